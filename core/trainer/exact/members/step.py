"""One step's share of the global batch: which rows are this member's, and how its results are weighted.

The convention that makes everything exact: inside a step a member's loss is its *estimate of the global
loss*, and estimates are averaged with the weights own rows / all rows. A mean over the own rows already is
such an estimate; a sum is divided by the weight; a mean with a data-dependent divisor uses the divisor summed
over all members. Gradients are weighted and summed where the optimizer gets them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.members.fewer_bits import Residuals
from core.trainer.exact.members.step_meter import StepMeter
from core.trainer.exact.members.trace_record import TraceRecord


@dataclass(slots=True)
class Step:
    """State of the step being traced (or run eagerly). Tensors are scalars."""

    collectives: Collectives
    weight: Any
    """float32: own rows / all rows. 0 on a member without a row in this batch."""
    present: Any
    """bool: whether this member has a row."""
    rows: Any
    """int64: rows of the global batch."""
    meter: StepMeter
    wire: str = "f32"
    """How dense float32 gradients travel: see gradients.py."""
    residuals: Residuals = field(default_factory=Residuals)
    coded: int = 0
    """Packs sent in 8 bits so far."""
    sums_alone: bool = False
    """Audits cover only the members' sums."""
    applying: bool = False
    """Inside an optimizer's apply: gradients are already reduced."""
    at_tape: bool = False
    """Gradients are reduced where a tape returns them: the script's own step may use them."""
    own_step: bool = False
    """The script defined the step."""
    begin: Any = None
    """int64: the first own row, and the one past the last."""
    end: Any = None
    gathers: bool = False
    """A compiled loss receives predictions and targets of all rows."""
    sums: frozenset[int] = frozenset()
    """Places of the recorded numbers that are sums over rows, not means."""
    record: TraceRecord = field(default_factory=TraceRecord)
    reduced: list[Any] = field(default_factory=list)
    """Gradients that a tape has returned so far, reduced."""

    def per_weight(self, value: Any) -> Any:
        """A sum over the own rows as an estimate of the global sum; 0 if there is no own row."""
        return tf.math.divide_no_nan(value, tf.cast(self.weight, value.dtype))

    @property
    def meets_between_steps(self) -> bool:
        """Members meet between steps, not in them: sums over all rows are estimated from the own rows."""
        return self.collectives.meets_between_steps

    def estimate(self, value: Any) -> Any:
        """A sum over the own rows as an estimate of the sum over all, with its gradient."""
        return tf.where(self.present, self.per_weight(value), value)

    def total(self, value: Any) -> Any:
        """The sum over the members that have rows; no gradient."""
        if self.meets_between_steps:
            return tf.stop_gradient(self.estimate(value))
        return self.sum(tf.where(self.present, value, tf.zeros_like(value)))

    def sum(self, value: Any) -> Any:
        """The sum over all members, timed as a wait for them; no gradient."""
        total = self.meter.exchange([value], lambda: [self.collectives.sum(value, "a sum within a step")])[0]
        self.record.mark_same([total])
        return total

    def each(self, value: Any) -> Any:
        """The members' values by rank, along a new first axis; zeros for one without rows. No gradient.

        If members meet between steps, only the own value.
        """
        own = tf.where(self.present, value, tf.zeros_like(value))[tf.newaxis]
        if self.meets_between_steps:
            return own
        what = "values within a step"
        values = self.meter.exchange([own], lambda: self.collectives.gather_all([own], what))[0]
        self.record.mark_same([values])
        return values

    def mark_reduced(self, reduced: Iterable[Any]) -> None:
        """Marks these tensors as gradients of all rows."""
        found = [grad for grad in reduced if grad is not None]
        self.reduced += found
        self.record.mark_same(found)

    def is_sum(self, number: int) -> bool:
        """Whether a recorded number, by its place, is a sum over the own rows."""
        return number in self.sums


class _Active(threading.local):
    """The active step, one for each thread: a script's thread may predict while another one traces a step."""

    def __init__(self) -> None:
        self.steps: list[Step | None] = []


_active = _Active()


def current() -> Step | None:
    """The step being traced or run in this thread, if any."""
    return _active.steps[-1] if _active.steps else None


@contextmanager
def active(step: Step) -> Iterator[Step]:
    _active.steps.append(step)
    try:
        yield step
    finally:
        _active.steps.pop()


def outer() -> Step | None:
    """The step that is active around `outside`, if the code runs in one."""
    return _active.steps[-2] if len(_active.steps) > 1 and _active.steps[-1] is None else None


@contextmanager
def outside() -> Iterator[None]:
    """A context without an active step: values computed in it already cover all rows."""
    _active.steps.append(None)
    try:
        yield
    finally:
        _active.steps.pop()


def bounds(rows: Any, shares: Any, rank: int) -> tuple[Any, Any]:
    """This rank's first row and the one past its last, like ``plan.split_rows``, in tensors."""
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
    """Rows of a concrete batch."""
    return int(rows_of(tf.nest.map_structure(without_optional, batch)))


def rows_differ(data: Any) -> bool:
    """Whether a batch has arrays of different lengths: not all of them have an entry per row."""
    leaves = [without_optional(leaf) for leaf in tf.nest.flatten(data)]
    lengths = {int(rows_of(leaf)) for leaf in leaves if leaf is not None and leaf.shape.rank != 0}
    return len(lengths) > 1


def without_optional(leaf: Any) -> Any:
    """Unwraps the Optional that tf.data makes of a None in a batch."""
    return None if isinstance(leaf, tf.experimental.Optional) else leaf


def bytes_of(batch: Any) -> int:
    """Bytes of a concrete batch's tensors."""
    leaves = tf.nest.flatten(batch, expand_composites=True)
    return sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in leaves if isinstance(leaf, tf.Tensor))


def take_rows(data: Any, begin: Any, end: Any) -> Any:
    """Rows begin..end of every array of a batch."""

    def take(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, tf.experimental.Optional):
            return leaf
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
