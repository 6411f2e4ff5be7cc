"""Checks that members keep reading the same data after a call's first batch, which `agreement` compares.

Each step takes marks of its whole batch: sums with fixed random weights over a sample of every tensor. Marks
accumulate and are exchanged in meetings that happen anyway. Another order of rows changes the sum, and so
does another value, unless it is one of very many in a large tensor. For the cost, see docs/exactness.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

SAMPLED = 2048
"""Numbers sampled evenly from a tensor; smaller tensors are read whole."""
GROUPS = (
    "x",
    "the targets or weights",
    "whole numbers or texts of x",
    "whole numbers or texts of the targets",
)
_TOLERANCES = (1e-4, 1e-4, 1e-5, 1e-5)
"""For each group, relative to the sum of absolute values. Processors round differently, and a pixel rounded
to another integer must not end a run after hours; one wrong label in a hundred batches exceeds this."""


class DataMarks:
    """The marks of this member's steps, in a variable local to this process. `take` is traced into steps."""

    def __init__(self) -> None:
        with tf.device("CPU:0"):
            self.sums = tf.Variable(tf.zeros([2 * len(GROUPS)], tf.float64), trainable=False)
        self._weights = np.random.RandomState(7).uniform(0.5, 1.5, SAMPLED)
        self._weights *= np.random.RandomState(8).choice([-1.0, 1.0], SAMPLED)

    def begin(self) -> None:
        """Call at the start of a call of several steps."""
        with tf.device("CPU:0"):
            self.sums.assign(tf.zeros_like(self.sums))

    def take(self, parts: Sequence[tuple[bool, Any]]) -> None:
        """`parts`: every tensor of a batch, and whether it belongs to x."""
        marks: list[list[Any]] = [[] for _ in GROUPS]
        with tf.device("CPU:0"):
            for is_x, tensor in parts:
                group = (0 if is_x else 1) + (0 if tensor.dtype.is_floating else 2)
                if (
                    tensor.dtype.is_floating
                    or tensor.dtype.is_integer
                    or tensor.dtype in (tf.bool, tf.string)
                ):
                    marks[group].append(self._mark(tensor))
            none = tf.zeros([2], tf.float64)
            self.sums.assign_add(tf.concat([tf.add_n(each) if each else none for each in marks], 0))

    def so_far(self) -> Any:
        """float64 [2 * groups]: for each group the weighted sum, and the sum of its absolute values."""
        with tf.device("CPU:0"):
            return self.sums.read_value()

    def _mark(self, tensor: Any) -> Any:
        if tensor.dtype == tf.string:
            tensor = tf.strings.to_hash_bucket_fast(tensor, 1009)
        flat = tf.reshape(tensor, [-1])
        some = tf.cast(flat[:: tf.size(flat) // SAMPLED + 1], tf.float64)
        weighted = some * tf.constant(self._weights)[: tf.size(some)]
        return tf.stack([tf.reduce_sum(weighted), tf.reduce_sum(tf.abs(weighted))])


def unlike(marks: np.ndarray, *, drawn: bool) -> dict[int, list[str]]:
    """The groups that differ from the chief's, by rank.

    `marks`: float64 [2 * groups, members]. `drawn`: each member draws its own floating-point x.
    """
    found: dict[int, list[str]] = {}
    for group, (name, tolerance) in enumerate(zip(GROUPS, _TOLERANCES, strict=True)):
        sums, sizes = marks[2 * group], marks[2 * group + 1]
        if group == 0 and drawn:
            continue
        for rank in range(1, len(sums)):
            if not _near(sums[0], sums[rank], tolerance * max(sizes[0], sizes[rank])):
                found.setdefault(rank, []).append(name)
    return found


def _near(one: float, other: float, tolerance: float) -> bool:
    if not (np.isfinite(one) and np.isfinite(other)):
        return bool(np.isfinite(one) == np.isfinite(other))
    return bool(abs(one - other) <= tolerance)
