"""What a member's machine knows, is told and asks for. Data only; the steps are in ``participant``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from core.run.draft import Send
from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.vocabulary.errors import Problem
from core.vocabulary.events import ConsentAsked, ConsentSettled, RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import From
from core.vocabulary.phases import Exit, MemberPhase
from core.vocabulary.plan import Plan
from core.vocabulary.progress import LogLines
from core.vocabulary.state import State
from core.vocabulary.trainer_messages import Report

Stage = Literal["new", "consent", "listing", "receiving", "making", "ready", "running", "leaving", "gone"]
"""``leaving``: nothing is left to do but to end trainers, hand over outputs and hear how the run ended."""

# --- told --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """The first event. ``allowed``: this user need not be asked."""

    allowed: bool
    changed: bool = False
    refusal: Problem | None = None
    """Why this node cannot take part at all."""


@dataclass(frozen=True, slots=True)
class Decided:
    """This user's answer."""

    allowed: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """What is missing of the project here."""

    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PiecesCame:
    """Bytes of the project that are here."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class FilesHere:
    """The whole project is in the store, verified."""


@dataclass(frozen=True, slots=True)
class MadeReady:
    """Working copies are made, ports chosen: by task name."""

    ports: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PreparingFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class StarterLost:
    problem: Problem


@dataclass(frozen=True, slots=True)
class TrainerSaid:
    task: str
    report: Report


@dataclass(frozen=True, slots=True)
class TrainerWrote:
    lines: LogLines


@dataclass(frozen=True, slots=True)
class TrainerEnded:
    task: str
    exit: Exit


@dataclass(frozen=True, slots=True)
class OutputsFound:
    """What the chief's script wrote; ``problem``: why some of it stays here."""

    manifest: Manifest
    problem: Problem | None = None


Told = (
    Asked
    | Decided
    | Listed
    | PiecesCame
    | FilesHere
    | MadeReady
    | PreparingFailed
    | From
    | StarterLost
    | TrainerSaid
    | TrainerWrote
    | TrainerEnded
    | OutputsFound
    | TimerFired[Wait]
)

# --- asked for ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Show:
    """An event for this node's screen and record."""

    event: RunEvent | ConsentAsked | ConsentSettled


@dataclass(frozen=True, slots=True)
class ListMissing:
    """Look what of the project is not here. Answer: ``Listed`` or ``PreparingFailed``."""


@dataclass(frozen=True, slots=True)
class MakeReady:
    """Make the working copies, choose ports. Answer: ``MadeReady`` or ``PreparingFailed``."""


@dataclass(frozen=True, slots=True)
class StartTrainers:
    """One trainer for each of this device's tasks. Each will come back as ``TrainerEnded``."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class StopTrainers:
    force: int


@dataclass(frozen=True, slots=True)
class FindOutputs:
    """Look what the chief's script wrote. Answer: ``OutputsFound``."""


@dataclass(frozen=True, slots=True)
class SendOutputs:
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Gone:
    """The last effect: this node's part is over. ``outputs_taken``: the starter has them all."""

    outputs_taken: bool


Effect = (
    Send
    | Show
    | ListMissing
    | MakeReady
    | StartTrainers
    | StopTrainers
    | FindOutputs
    | SendOutputs
    | SetTimer[Wait]
    | CancelTimer[Wait]
    | Gone
)

# --- known -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Participation:
    """The whole of what a member knows of its part."""

    me: DeviceId
    plan: Plan
    manifest: Manifest
    starter_name: str
    checkpoint: Manifest | None = None
    """The files of the one that the run goes on with."""
    stage: Stage = "new"
    joined: bool = False
    """This user allowed it: the run is shown here."""
    shown: State = field(default_factory=State)
    """The mirrored run, to see that what the starter says can follow."""
    doing: Mapping[str, MemberPhase] = field(default_factory=lambda: MappingProxyType({}))
    """By task name, of trainers that run."""
    strategy: str = ""
    said_phase: tuple[MemberPhase, str] = ("waiting", "")
    progressed_s: float = float("-inf")
    abandoned: bool = False
    starter_lost: bool = False
    verdict: Problem | None = None
    """How the run ends here if the starter does not say it."""
    concluded: bool = False
    """The last phase has been shown."""
    outputs_taken: bool = False
    waits: frozenset[Wait] = frozenset()

    @property
    def local(self) -> bool:
        """The starter's own part: its screen already shows what the coordinator emits."""
        return self.plan.starter == self.me
