"""A sweep's state, inputs and effects: data. Its steps are in ``machine``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.vocabulary.errors import Problem
from core.vocabulary.events import SweepChanged, TrialChanged
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import ExitReason, Outcome
from core.vocabulary.progress import EpochEnd
from core.vocabulary.sweep import Sweep

Wait = Literal["rest", "absent"]
"""``rest``: until laptops with a failed trial are tried again. ``absent``: until a sweep without laptops
gives up."""

# --- inputs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SweepBegun:
    """The first input."""


@dataclass(frozen=True, slots=True)
class LaptopSeen:
    """News of a laptop that takes trials. ``there``: it is connected; ``free``: no run is under way on it."""

    device: DeviceId
    there: bool
    free: bool


@dataclass(frozen=True, slots=True)
class TrialStarted:
    number: int
    run: RunId


@dataclass(frozen=True, slots=True)
class TrialNotStarted:
    number: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class TrialEndedEpoch:
    number: int
    epoch: EpochEnd


@dataclass(frozen=True, slots=True)
class TrialTrainerEnded:
    number: int
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class TrialOver:
    number: int
    phase: Outcome


@dataclass(frozen=True, slots=True)
class SetsAdded:
    """More sets of arguments."""

    argument_sets: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class StopPressed:
    """Somebody pressed Stop here."""


Input = (
    SweepBegun
    | LaptopSeen
    | TrialStarted
    | TrialNotStarted
    | TrialEndedEpoch
    | TrialTrainerEnded
    | TrialOver
    | SetsAdded
    | StopPressed
    | TimerFired[Wait]
)

# --- effects -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartTrial:
    """Begin a trial on a laptop. Answer: ``TrialStarted`` or ``TrialNotStarted``."""

    number: int
    device: DeviceId


@dataclass(frozen=True, slots=True)
class StopTrial:
    """Stop a trial, more forcefully each time."""

    number: int


@dataclass(frozen=True, slots=True)
class DeleteModel:
    """Delete the models and checkpoints of a trial's run."""

    run: RunId


@dataclass(frozen=True, slots=True)
class Keep:
    """Write the sweep to the disk."""


Effect = (
    StartTrial
    | StopTrial
    | DeleteModel
    | Keep
    | SweepChanged
    | TrialChanged
    | SetTimer[Wait]
    | CancelTimer[Wait]
)

# --- the state ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Laptop:
    """A laptop that takes trials. ``rests``: a trial failed on it just now. ``out``: why it takes no more."""

    name: str
    there: bool = False
    free: bool = False
    rests: bool = False
    out: Problem | None = None


@dataclass(frozen=True, slots=True)
class Sweeping:
    """``reasons``: how a running trial's trainer ended, by the trial's number."""

    sweep: Sweep
    laptops: Mapping[DeviceId, Laptop]
    reasons: Mapping[int, ExitReason] = field(default_factory=lambda: MappingProxyType({}))
    waits: frozenset[Wait] = frozenset()
    began_s: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """When each trial was begun last, by its number."""
    took_s: Mapping[DeviceId, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Durations of each laptop's finished trials."""
