"""Short marks of a step's gradients, for comparing two ways of computing the step.

Each gradient fills rows of a table, which is multiplied by fixed waves along both axes, in float64: the marks
of two gradients differ by about as much as the gradients do. Only audited steps take marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import attributes

MOST = 512
"""Most gradients with marks of their own; any further ones share them, as marks may be added."""
WAYS = 4
MARKS = 1 + WAYS
"""Numbers for each gradient: its squared norm, and its marks."""
NONE = 1e300
"""Sent in place of marks of NaN and infinity."""
FAULT = (
    "This is a fault of Tandem or of a laptop's memory. Resume the run from its last checkpoint; if it "
    "happens again, report it with the run's log."
)
"""Advice about a wrong sum."""
_ACROSS = 64
"""Numbers in a row of the table of all gradients. Separate operations for each gradient are slow to trace."""
_MOST_ROWS = 8192
"""Most rows of that table; large models have longer rows, as the waves become part of the trace."""
_TURNS = (12.9898, 78.233, 37.719, 93.989)
"""Radians between two entries of each wave."""


class Sketches:
    """The marks of one step, in variables local to this process. `take` is traced into steps."""

    def __init__(self, *, are_taken: bool = True) -> None:
        with tf.device("CPU:0"):
            self._wanted = tf.Variable(False, trainable=False)
            self.sums = tf.Variable(tf.zeros([MOST, 1 + WAYS], tf.float64), trainable=False)
        self._are_taken = are_taken
        self._taken = 0

    def begin_trace(self) -> None:
        """Call before another step is traced: restarts the count of its gradients."""
        self._taken = 0

    def begin(self) -> None:
        """Makes the next step take marks."""
        self._wanted.assign(True)
        self.sums.assign(tf.zeros_like(self.sums))

    def end(self) -> np.ndarray:
        """float64 [MOST, 1 + WAYS]: for each gradient its squared norm, and its marks."""
        self._wanted.assign(False)
        return np.asarray(self.sums.numpy())

    def take(self, gradients: Sequence[Any]) -> dict[int, int]:
        """Takes marks of the gradients of all rows, which an optimizer or the script gets on every member.

        Returns each gradient's number of elements, if known, by its place among the marks.
        """
        present = [_sized(gradient) for gradient in gradients if gradient is not None]
        if not present or not self._are_taken:
            return {}
        places = [[(self._taken + place) % MOST] for place in range(len(present))]
        self._taken += len(present)
        if tf.executing_eagerly():
            if self._wanted:
                self.sums.assign_add(tf.scatter_nd(places, _marks(*present), self.sums.shape))
            return {}

        # Not inlined: each operation of a branch that is not taken would cost as much as an empty operation.
        every = tf.function(_marks, autograph=False, experimental_attributes={attributes.NO_INLINE: True})
        marked = every.get_concrete_function(*present)

        def taken() -> Any:
            marks = marked(*present)
            with tf.device("CPU:0"):
                self.sums.assign_add(tf.scatter_nd(places, marks, self.sums.shape))
            return tf.constant(0)

        with tf.device("CPU:0"):
            wanted = self._wanted.read_value()
        tf.cond(wanted, taken, lambda: tf.constant(0))
        sizes = [
            None if isinstance(each, tf.IndexedSlices) else each.shape.num_elements() for each in present
        ]
        return {place: size for [place], size in zip(places, sizes, strict=True) if size is not None}


def marks_of(gradients: Sequence[Any]) -> np.ndarray:
    """The marks of gradients outside of a graph: float64 [gradients, MARKS]."""
    return np.asarray(_marks(*map(_sized, gradients)).numpy())


def wrong_sums(sent: np.ndarray, received: np.ndarray, rounding: float) -> bool:
    """Whether members received sums that differ from the sums of what they sent.

    ``sent``, ``received``: marks of each pack, float64 [members, MOST, 1 + WAYS]. ``rounding``: the relative
    error of one addition. Packs with NaN or infinity are not compared; such marks must be `NONE`.
    """
    is_finite = (sent != NONE).all(axis=(0, 2)) & (received != NONE).all(axis=(0, 2))
    sent, received = sent[:, is_finite], received[:, is_finite]
    limit = 4 * len(sent) * rounding * np.sqrt(sent[:, :, 0]).sum(axis=0)
    apart = np.linalg.norm(received[:, :, 1:] - sent[:, :, 1:].sum(axis=0), axis=2)
    return bool((apart > limit).any())


def _sized(gradient: Any) -> Any:
    """Treats a gradient of unknown shape as slices of one number each."""
    shape = gradient.values.shape[1:] if isinstance(gradient, tf.IndexedSlices) else gradient.shape
    if shape.is_fully_defined():
        return gradient
    flat = tf.reshape(tf.convert_to_tensor(gradient), [-1, 1])
    return tf.IndexedSlices(flat, tf.range(tf.size(flat)))


def _marks(*gradients: Any) -> Any:
    """float64 [gradients, 1 + WAYS]."""
    sparse = [place for place, each in enumerate(gradients) if isinstance(each, tf.IndexedSlices)]
    dense = [place for place in range(len(gradients)) if place not in sparse]
    found = [_of_slices(gradients[place])[tf.newaxis] for place in sparse]
    found += [_of_tensors([gradients[place] for place in dense])] if dense else []
    return tf.gather(tf.concat(found, 0), np.argsort(sparse + dense)) if sparse else found[0]


def _of_tensors(gradients: Sequence[Any]) -> Any:
    sizes = [gradient.shape.num_elements() for gradient in gradients]
    across = _ACROSS
    while sum(sizes) > across * _MOST_ROWS:
        across *= 2
    rows = [-(-size // across) for size in sizes]
    parts: list[Any] = []
    for gradient, size, count in zip(gradients, sizes, rows, strict=True):
        parts += [tf.reshape(tf.cast(gradient, tf.float32), [-1])]
        parts += [np.zeros(count * across - size, np.float32)] if size % across else []
    table = tf.reshape(tf.concat(parts, 0), [-1, across])
    marks = _of_rows(table, np.sin(np.outer(np.arange(1, 1 + sum(rows)), _TURNS)))
    return tf.math.unsorted_segment_sum(marks, np.repeat(np.arange(len(rows)), rows), len(rows))


def _of_slices(gradient: Any) -> Any:
    """The marks depend on the slices' indices, not on their order."""
    along = tf.cast(gradient.indices[:, tf.newaxis] + 1, tf.float64) * np.array([_TURNS])
    columns = gradient.values.shape[1:].num_elements()
    return tf.reduce_sum(_of_rows(tf.reshape(gradient.values, [-1, columns]), tf.sin(along)), axis=0)


def _of_rows(table: Any, along: Any) -> Any:
    """float64 [rows, 1 + WAYS]. ``along``: the waves at each row's place, likewise [rows, WAYS]."""
    table = tf.cast(table, tf.float64)
    across = 2.0 * np.sin(np.outer(np.arange(1, 1 + table.shape[1]), _TURNS))
    squares = tf.reduce_sum(tf.square(table), 1, keepdims=True)
    return tf.concat([squares, along * tf.matmul(table, across)], 1)
