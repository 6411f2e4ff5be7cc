"""The participant's state, inputs and effects: data. Its steps are in ``machine`` and ``ending``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.vocabulary.access import Grant
from core.vocabulary.errors import Problem
from core.vocabulary.events import Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import LOAD_S, MEET_S, Wait
from core.vocabulary.manifest import Difference, Manifest
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.permission import Gap, Part, Permission
from core.vocabulary.phases import Exit, MemberPhase
from core.vocabulary.plan import Plan, Task
from core.vocabulary.progress import LogLines
from core.vocabulary.state import State
from core.vocabulary.traffic import From, LinkNews, Send
from core.vocabulary.trainer_messages import Order, Report

# --- inputs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ManifestCame:
    """The manifest, where it came as a file. Before ``Checked``."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Checked:
    """The request was checked. ``allowed``: nobody is asked. ``rate_bytes_s``: of its last files."""

    allowed: bool
    differs: dict[str, Difference] | None = None
    beyond: tuple[Part, ...] = ()
    """How files (None: no version was allowed) and access differ from the version that was allowed last."""
    reach: Permission | None = None
    """Everything that the run could access here."""
    opened: tuple[Grant, ...] = ()
    """The part of it that the script asks to open beside its own folders."""
    gaps: tuple[Gap, ...] = ()
    rate_bytes_s: float = 0.0
    refusal: Problem | None = None
    """Why this node cannot take part at all."""


@dataclass(frozen=True, slots=True)
class Decided:
    """This user's answer."""

    allowed: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """Bytes of the project and the checkpoint that are missing here; 0: both are complete."""

    total_bytes: int


@dataclass(frozen=True, slots=True)
class PiecesCame:
    """Bytes of the project that are here, and their rate; 0: not known yet."""

    done: int
    total: int
    rate_bytes_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkDone:
    """``done`` of ``total`` bytes of files were read or written here: a sign of life. ``words``: what for."""

    words: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class FilesHere:
    """The whole project is in the store, verified."""


@dataclass(frozen=True, slots=True)
class MadeReady:
    """Working copies are made, ports chosen, and certificates of this run where needed: by task name."""

    ports: Mapping[str, int]
    certificates: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    load_s: float = LOAD_S
    """The longest time that TensorFlow may take to load here."""


@dataclass(frozen=True, slots=True)
class PreparingFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class Abandoned:
    """This laptop's user ends its part without waiting for the starter. ``by``: this laptop's name."""

    problem: Problem
    by: str


@dataclass(frozen=True, slots=True)
class LeaveWanted:
    """This laptop leaves; the others go on. ``why``: what they are told."""

    why: Problem


@dataclass(frozen=True, slots=True)
class TrainersChecked:
    """The answer to ``CheckTrainers``: the tasks whose process is stopped, and each one's processor time in
    seconds."""

    stopped: frozenset[str]
    cpu_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class TrainerReported:
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
    """The outputs of the chief's script; ``problem``: why some of them stay here."""

    manifest: Manifest
    problem: Problem | None = None


_Files = Listed | PiecesCame | WorkDone | FilesHere
_Preparing = ManifestCame | Checked | Decided | _Files | MadeReady | PreparingFailed
_FromStarter = From | LinkNews
_FromTrainers = TrainersChecked | TrainerReported | TrainerWrote | TrainerEnded
Input = _Preparing | _FromStarter | LeaveWanted | Abandoned | _FromTrainers | OutputsFound | TimerFired[Wait]

# --- effects -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListMissing:
    """Find the project's files that are missing here. Answer: ``Listed`` or ``PreparingFailed``."""


@dataclass(frozen=True, slots=True)
class FetchFrom:
    """Fetch the missing files from this member. Answer: ``FilesHere`` or ``PreparingFailed``."""

    giver: DeviceId


@dataclass(frozen=True, slots=True)
class GiveTo:
    """Let this member fetch what comes here."""

    device: DeviceId


@dataclass(frozen=True, slots=True)
class MakeReady:
    """Make the working copies, choose ports. Answer: ``MadeReady`` or ``PreparingFailed``."""


@dataclass(frozen=True, slots=True)
class StartTrainers:
    """Start one trainer for each of this device's tasks, which waits ``meet_s`` for the others. Each comes
    back as ``TrainerEnded``."""

    plan: Plan
    meet_s: float = MEET_S


@dataclass(frozen=True, slots=True)
class StopTrainers:
    force: int


@dataclass(frozen=True, slots=True)
class OrderTrainers:
    order: Order


@dataclass(frozen=True, slots=True)
class CheckTrainers:
    """Check whether their processes are stopped. Answer: ``TrainersChecked``."""


@dataclass(frozen=True, slots=True)
class FindOutputs:
    """Answer: ``OutputsFound``."""


@dataclass(frozen=True, slots=True)
class SendOutputs:
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Leave:
    """The last effect: this node's part is over. ``outputs_taken``: the starter has all outputs."""

    outputs_taken: bool
    joined: bool
    """This user had allowed the run: clean up what was made for it."""


_ToTrainers = StartTrainers | StopTrainers | OrderTrainers | CheckTrainers
OwnEffect = ListMissing | FetchFrom | GiveTo | MakeReady | _ToTrainers | FindOutputs | SendOutputs | Leave
Effect = OwnEffect | Send | Shown | SetTimer[Wait] | CancelTimer[Wait]

# --- stages ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Invited:
    """The request is being checked."""


@dataclass(frozen=True, slots=True)
class Asking:
    """This user is being asked."""


@dataclass(frozen=True, slots=True)
class Scanning:
    """Looks up which files are missing here. From here on the run is shown here, too."""


@dataclass(frozen=True, slots=True)
class Receiving:
    """The missing files are coming, or will once the starter has said from whom."""

    giver: DeviceId | None = None


@dataclass(frozen=True, slots=True)
class Copying:
    """Working copies are made and ports chosen."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Waits for the launch."""


@dataclass(frozen=True, slots=True)
class TrainersRunning:
    """Trainers run."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Every trainer here has ended. The starter reports how the run ends, however long others train."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Only ends trainers, and waits to hear how the run ended."""

    verdict: Problem
    """How the run ends here if the starter does not report it."""
    starter_lost: bool = False
    """The starter can no longer report it."""
    concluded: bool = False
    """The last phase has been shown."""
    by: str = ""
    """This laptop's name, if its user ended it."""
    goes_on: bool = False
    """The starter was lost: trainers stop at the end of a step, to go on without it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing follows in this run. ``goes_on``: as in ``Leaving``, and there is a checkpoint for it."""

    goes_on: bool = False


Stage = Invited | Asking | Scanning | Receiving | Copying | Ready | TrainersRunning | Trained | Leaving | Gone

# --- the state ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastHeard:
    """When a trainer last reported, and last ended a step. ``cpu_s``: its processor time at ``checked_s``,
    the first check after its last report."""

    at_s: float
    checked_s: float = 0.0
    cpu_s: float = 0.0
    silence_told_s: float | None = None
    """When the starter was last told of its silence."""
    stepped_s: float = -math.inf


@dataclass(frozen=True, slots=True)
class Participation:
    """This node's part in one run."""

    me: DeviceId
    plan: Plan
    request: Prepare
    """The request as it came, with the whole manifest."""
    starter_name: str
    stage: Stage = field(default_factory=Invited)
    shown: State = field(default_factory=State)
    """The mirrored run, to check that the starter's events can follow."""
    left_out: int = 0
    """Number of the starter's events that could not follow."""
    refusal: Problem | None = None
    """This laptop's reason for declining."""
    opened: tuple[Grant, ...] | None = None
    """Folders that were allowed beside the script's own; None: nobody was asked."""
    allowed: bool | None = None
    """This user's answer."""
    doing: Mapping[str, MemberPhase] = field(default_factory=lambda: MappingProxyType({}))
    """The phases of running trainers, by task name."""
    strategy: str = ""
    said_phase: tuple[MemberPhase, str] = ("waiting", "")
    outputs_taken: bool = False
    leaves: Problem | None = None
    """Why this laptop leaves the run; None: it does not."""
    has_checkpoint: bool = False
    """A trainer here has written a checkpoint of this run."""
    gone: tuple[DeviceId, ...] = ()
    """Members that have left the run, as far as the starter has said so."""
    asked_force: int = -1
    """The highest force with which the starter asked trainers here to end; -1: it has not."""
    away_s: float | None = None
    """Since when the starter is silent and waited for."""
    stopped: frozenset[str] = frozenset()
    heard: Mapping[str, LastHeard] = field(default_factory=lambda: MappingProxyType({}))
    unix_offset_s: float = 0.0
    """Unix time minus the clock of every step."""
    waits: frozenset[Wait] = frozenset()

    def waiting(self, waits: frozenset[Wait]) -> Self:
        return replace(self, waits=waits)

    @property
    def manifest(self) -> Manifest:
        return self.request.manifest

    @property
    def chief(self) -> Task:
        """The chief among the present members: everybody gets its outputs."""
        return self.plan.chief_without(self.gone)

    @property
    def joined(self) -> bool:
        """This user, or an earlier decision, allowed the run: it is shown here."""
        return not isinstance(self.stage, Invited | Asking)

    @property
    def starter_lost(self) -> bool:
        return isinstance(self.stage, Leaving) and self.stage.starter_lost

    @property
    def local(self) -> bool:
        """Whether this is the starter's own part: its screen already shows the coordinator's events."""
        return self.plan.starter == self.me
