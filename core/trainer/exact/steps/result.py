"""What goes into steps and comes of them: shapes of tensors, a traced step, a call's result. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from core.cluster.balance import Balancer
from core.trainer.exact.keras.local_state import LocalState
from core.trainer.exact.members.notes import Notes

Tensor: TypeAlias = Any
"""TensorFlow ships no types of use; where no shape is said, a scalar."""
Batch: TypeAlias = Any
"""A global batch as Keras has it: arrays in tuples and dicts, with rows along their first axis."""
Spec: TypeAlias = Any
"""The TensorSpecs of a batch, nested alike."""
Logs: TypeAlias = dict[str, Tensor]


class StepOutputs(NamedTuple):
    """What one step gives, in tensors."""

    logs: Logs
    """Of the own rows. Whatever a ``train_step`` of the script's own returns, where that is no dict."""
    weight: Tensor
    """float32: own rows / all rows."""
    rows: Tensor
    """int64: of the global batch."""
    present: Tensor
    """bool: there are own rows."""


class CallOutputs(NamedTuple):
    """What one call of several steps gives, in tensors, after the members met."""

    logs: Logs
    rows: Tensor
    done: Tensor
    stops: Tensor
    """float64: how many members are asked to stop."""
    times_s: Tensor
    """float64 [2, members]: a step's own work, and its wait for others."""
    marks: Tensor
    """float64 [2 * groups, members]: of the steps' data (members/data_marks.py)."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the rows of a batch are shared by the steps of one kind of data."""

    sums: frozenset[int] = frozenset()
    """Places among the noted numbers of those that are sums over rows (members/notes.py)."""
    gathers: bool = False
    """Compiled losses have predictions and targets of all rows."""
    whole: bool = False
    """Every member computes the whole batch, as one process would: nothing is shared."""


@dataclass(slots=True)
class Traced:
    """A step for one kind of data: with its state, and the calls that run it."""

    step: Any
    """A traced function, or an ordinary one where the model runs eagerly."""
    state: LocalState
    calls: dict[str, Callable[..., CallOutputs]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    """The calls made so far: the first of each traces, and is not measured."""
    balancer: Balancer | None = None
    calibrated: bool = False
    notes: Notes = field(default_factory=Notes)
    """Of the trace."""
    sharing: Sharing = field(default_factory=Sharing)
    log_values: dict[str, Callable[[], Tensor]] = field(default_factory=dict)
    """By name, what computes a value of the logs from metrics."""
    judged: bool = False
    """Whether its losses are means over rows is known."""


@dataclass(frozen=True, slots=True)
class PortionResult:
    """What came of one call into TensorFlow, after which the members met."""

    logs: Logs
    rows: int
    """Of the last global batch."""
    done: int
    stop: bool
    """A member was asked to stop."""
    step_s: float
    """Mean time of a step, the meeting included; 0 where it was not measured, as are the others."""
    own_s: tuple[float, ...]
    """By rank: mean time of a step without the wait for others."""
    wait_s: tuple[float, ...]
    """By rank: mean time in which a step waited for others, and for the wire."""

    @property
    def timed(self) -> bool:
        return all(self.own_s)
