"""Inputs and outputs of steps: tensor shapes, a traced step, a call's result. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from core.cluster.balance import Balancer
from core.trainer.exact.keras.local_state import LocalState
from core.trainer.exact.members.trace_record import TraceRecord
from core.trainer.exact.steps.course import Course
from core.trainer.exact.steps.undo import Undo

Tensor: TypeAlias = Any
"""TensorFlow ships no usable types; a scalar unless a shape is given."""
Batch: TypeAlias = Any
"""A global batch in Keras' form: arrays in tuples and dicts, with rows along their first axis."""
Spec: TypeAlias = Any
"""The TensorSpecs of a batch, nested alike."""
Logs: TypeAlias = dict[str, Tensor]


class StepOutputs(NamedTuple):
    """One step's outputs, as tensors."""

    logs: Logs
    """Logs of the own rows, or whatever else a custom ``train_step`` returns."""
    weight: Tensor
    """float32: own rows / all rows."""
    rows: Tensor
    """int64: rows of the global batch."""
    present: Tensor
    """bool: whether there are own rows."""


class CallOutputs(NamedTuple):
    """The outputs of one call of several steps, as tensors, after the members met."""

    logs: Logs
    rows: Tensor
    """int64: rows of the last global batch."""
    all_rows: Tensor
    """int64: rows of all its global batches."""
    done: Tensor
    stops: Tensor
    """float64: how many members were asked to stop."""
    audits: Tensor
    """float64: how many members compute the step for an audit."""
    times_s: Tensor
    """float64 [2, members]: a step's own work, and its wait for others."""
    marks: Tensor
    """float64 [2 * groups, members]: marks of the steps' data (members/data_marks.py)."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the rows of a batch are shared by the steps of one kind of data."""

    sums: frozenset[int] = frozenset()
    """Places of the recorded numbers that are sums over rows (members/trace_record.py)."""
    gathers: bool = False
    """Compiled losses receive predictions and targets of all rows."""
    whole: bool = False
    """Every member computes the whole batch, as one process would: nothing is shared."""


@dataclass(slots=True)
class Traced:
    """A step for one kind of data, with its state and the calls that run it."""

    step: Any
    """A traced function, or an ordinary one if the model runs eagerly."""
    state: LocalState
    calls: dict[str, Callable[..., CallOutputs]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    """The calls made so far: the first of each traces, and is not timed."""
    balancer: Balancer | None = None
    calibrated: bool = False
    record: TraceRecord = field(default_factory=TraceRecord)
    """The trace's records."""
    sharing: Sharing = field(default_factory=Sharing)
    log_values: dict[str, Callable[[], Tensor]] = field(default_factory=dict)
    """Functions that compute log values from metrics, by name."""
    judged: bool = False
    """Whether it is known if its losses are means over rows."""
    row_limits: tuple[float, ...] = ()
    """Rows that fit into memory, by rank; empty if not measured."""
    course: Course = field(default_factory=Course)
    alone: bool = False
    """Its steps exchange nothing: members meet between them."""
    gradients: Callable[..., list[Tensor]] | None = None
    """Computes the gradients alone, once they have been checked (`probe.gradients_judged`)."""
    undo: Undo | None = None
    """Undoes a traced step's newest call."""
    at_end: Callable[[], object] | None = None
    """Makes the writes that the step makes even after the data has ended; None: not traced yet."""


@dataclass(frozen=True, slots=True)
class PortionResult:
    """The result of one call into TensorFlow, after which the members met."""

    logs: Logs
    rows: int
    """Rows of the last global batch."""
    mean_rows: float
    """Rows of a global batch, the mean over the steps of `step_s`: an epoch's last batch may be smaller."""
    done: int
    stop: bool
    """Whether a member was asked to stop."""
    step_s: float
    """Mean time of a step, including the meeting; 0 if not measured, as are the other times."""
    met: tuple[int, ...]
    """Ranks of the members that did the steps."""
    own_s: tuple[float, ...]
    """For each of these ranks: mean time of a step without the wait for others."""
    wait_s: tuple[float, ...]
    """For each of these ranks: mean time in which a step waited for others, and for the wire."""

    @property
    def mean_s(self) -> float:
        """Mean time of a step, over the members."""
        return sum(self.own_s + self.wait_s) / len(self.met)

    @property
    def timed(self) -> bool:
        return all(self.own_s)
