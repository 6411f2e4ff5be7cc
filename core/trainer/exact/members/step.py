"""One step's share of the global batch: which rows are this member's, and what its results weigh.

The convention that makes everything exact: inside a step a member's loss is its *estimate of the global
loss*, and estimates are averaged with the weights own rows / all rows. A mean over the own rows is such an
estimate as it stands; a sum is divided by the weight; a mean with a data-dependent divisor uses the divisor
summed over all members. Gradients are weighted and summed where the optimizer gets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.members.gauge import Gauge
from core.trainer.exact.members.notes import Notes


@dataclass(slots=True)
class Step:
    """What the step being traced (or run eagerly) knows. Tensors are scalars."""

    collectives: Collectives
    weight: Any
    """float32: own rows / all rows. 0 on a member that has no row in this batch."""
    present: Any
    """bool: this member has a row."""
    rows: Any
    """int64: rows of the global batch."""
    gauge: Gauge
    wire: str = "f32"
    """How dense float32 gradients travel: see gradients.py."""
    applying: bool = False
    """Inside an optimizer's apply: gradients are already reduced."""
    at_tape: bool = False
    """Gradients are reduced where a tape gives them: the script's own step may work on them."""
    own_step: bool = False
    """The script wrote it."""
    begin: Any = None
    """int64: the first own row, and the one past the last."""
    end: Any = None
    gathers: bool = False
    """A compiled loss is given predictions and targets of all rows."""
    sums: frozenset[int] = frozenset()
    """Places among the noted numbers of those that are sums over rows, not means."""
    notes: Notes = field(default_factory=Notes)
    reduced: list[Any] = field(default_factory=list)
    """What a tape gave so far, reduced."""

    def per_weight(self, value: Any) -> Any:
        """A sum over the own rows as an estimate of the global sum; 0 where there is no own row."""
        return tf.math.divide_no_nan(value, tf.cast(self.weight, value.dtype))

    def total(self, value: Any) -> Any:
        """The sum over the members that have rows; no gradient."""
        return self.sum(tf.where(self.present, value, tf.zeros_like(value)))

    def sum(self, value: Any) -> Any:
        """The sum over all members, counted as a wait for them; no gradient."""
        total = self.gauge.exchange([value], lambda: [self.collectives.sum(value, "a sum within a step")])[0]
        self.notes.is_same([total])
        return total

    def met(self, reduced: Iterable[Any]) -> None:
        """Gradients of all rows, from here on."""
        found = [grad for grad in reduced if grad is not None]
        self.reduced += found
        self.notes.is_same(found)

    def summed(self, number: int) -> bool:
        """Whether a noted number is a sum over the own rows."""
        return number in self.sums


_active: list[Step | None] = []


def current() -> Step | None:
    """The step being traced or run in this process, if any."""
    return _active[-1] if _active else None


@contextmanager
def active(step: Step) -> Iterator[Step]:
    _active.append(step)
    try:
        yield step
    finally:
        _active.pop()


@contextmanager
def outside() -> Iterator[None]:
    """What is computed here is of all rows already."""
    _active.append(None)
    try:
        yield
    finally:
        _active.pop()


def bounds(rows: Any, shares: Any, rank: int) -> tuple[Any, Any]:
    """This rank's first row and the one past its last, as ``plan.split_rows`` has it, in tensors."""
    cumulated = tf.concat([[0], tf.cumsum(shares)], axis=0)
    total = cumulated[-1]
    ends = (2 * rows * cumulated[rank : rank + 2] + total) // (2 * total)
    return tf.where(rank == 0, tf.zeros_like(ends[0]), ends[0]), ends[1]


def rows_of(data: Any) -> Any:
    """Rows of a batch: the length of its first array. Scalars have none."""
    for leaf in tf.nest.flatten(data):
        if leaf is None:
            continue
        if isinstance(leaf, tf.RaggedTensor):
            return tf.cast(leaf.nrows(), tf.int64)
        if isinstance(leaf, tf.SparseTensor):
            return leaf.dense_shape[0]
        if tf.convert_to_tensor(leaf).shape.rank != 0:
            return tf.shape(leaf, out_type=tf.int64)[0]
    raise ValueError("The data has no array whose rows could be shared between the members.")


def count_rows(batch: Any) -> int:
    """Rows of a batch that is at hand."""
    return int(rows_of(tf.nest.map_structure(without_optional, batch)))


def rows_differ(data: Any) -> bool:
    """Whether a batch has arrays of different lengths: not all of them have an entry a row."""
    leaves = [without_optional(leaf) for leaf in tf.nest.flatten(data)]
    lengths = {int(rows_of(leaf)) for leaf in leaves if leaf is not None and leaf.shape.rank != 0}
    return len(lengths) > 1


def without_optional(leaf: Any) -> Any:
    """tf.data hands a None in a batch over as an Optional."""
    return None if isinstance(leaf, tf.experimental.Optional) else leaf


def take_rows(data: Any, begin: Any, end: Any) -> Any:
    """Rows begin..end of every array of a batch."""

    def take(leaf: Any) -> Any:
        if leaf is None:
            return None
        if isinstance(leaf, tf.SparseTensor):
            rank = leaf.shape.rank
            start = tf.concat([[begin], tf.zeros([rank - 1], tf.int64)], axis=0)
            size = tf.concat([[end - begin], leaf.dense_shape[1:]], axis=0)
            return tf.sparse.slice(leaf, start, size)
        if isinstance(leaf, tf.RaggedTensor):
            return leaf[begin:end]
        leaf = tf.convert_to_tensor(leaf)
        return leaf if leaf.shape.rank == 0 else leaf[begin:end]

    with tf.device("CPU:0"):
        return tf.nest.map_structure(take, data)
