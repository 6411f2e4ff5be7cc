"""What a participant knows, hears and asks for: data. Its steps are in ``machine`` and ``ending``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from core.run.draft import Shared
from core.run.replay import Replay
from core.runtime.timers import TimerFired
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import LOAD_S, MEET_S, Wait
from core.vocabulary.manifest import Difference, Manifest
from core.vocabulary.peer_messages import From, Prepared
from core.vocabulary.phases import Exit, MemberPhase, Stopping
from core.vocabulary.plan import Plan
from core.vocabulary.progress import LogLines
from core.vocabulary.state import State
from core.vocabulary.trainer_messages import Report

# --- inputs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """The first input. ``allowed``: this user need not be asked."""

    allowed: bool
    differs: dict[str, Difference] | None = None
    """From the version that was allowed last; None: none was, or not this."""
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
    """Working copies are made, ports chosen, and certificates of this run where needed: by task name."""

    ports: Mapping[str, int]
    certificates: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    load_s: float = LOAD_S
    """The longest that TensorFlow may take to load here."""


@dataclass(frozen=True, slots=True)
class PreparingFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class StarterLost:
    problem: Problem
    by: str = ""
    """This laptop's name, where its user leaves."""


@dataclass(frozen=True, slots=True)
class StarterReturned:
    """There is a link to it again."""


@dataclass(frozen=True, slots=True)
class TrainersSeen:
    """The answer to ``LookAtTrainers``: the tasks whose process is stopped, and the seconds of processor time
    that each has used."""

    stopped: frozenset[str]
    cpu_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


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


Input = (
    Asked
    | Decided
    | Listed
    | PiecesCame
    | FilesHere
    | MadeReady
    | PreparingFailed
    | From
    | StarterLost
    | StarterReturned
    | TrainersSeen
    | TrainerSaid
    | TrainerWrote
    | TrainerEnded
    | OutputsFound
    | TimerFired[Wait]
)

# --- effects -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListMissing:
    """Look what of the project is not here. Answer: ``Listed`` or ``PreparingFailed``."""


@dataclass(frozen=True, slots=True)
class MakeReady:
    """Make the working copies, choose ports. Answer: ``MadeReady`` or ``PreparingFailed``."""


@dataclass(frozen=True, slots=True)
class StartTrainers:
    """One trainer for each of this device's tasks, which waits ``meet_s`` for the others. Each will come back
    as ``TrainerEnded``."""

    plan: Plan
    meet_s: float = MEET_S


@dataclass(frozen=True, slots=True)
class StopTrainers:
    force: int


@dataclass(frozen=True, slots=True)
class LookAtTrainers:
    """Whether their processes are stopped. Answer: ``TrainersSeen``."""


@dataclass(frozen=True, slots=True)
class FindOutputs:
    """Look what the chief's script wrote. Answer: ``OutputsFound``."""


@dataclass(frozen=True, slots=True)
class SendOutputs:
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Leave:
    """The last effect: this node's part is over. ``outputs_taken``: the starter has them all."""

    outputs_taken: bool
    joined: bool
    """This user had allowed the run: what was made for it is to be tidied up."""


OwnEffect = (
    ListMissing
    | MakeReady
    | StartTrainers
    | StopTrainers
    | LookAtTrainers
    | FindOutputs
    | SendOutputs
    | Leave
)
Effect = Shared | OwnEffect

# --- stages ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Invited:
    """The request is being looked at."""


@dataclass(frozen=True, slots=True)
class Asking:
    """This user is asked."""


@dataclass(frozen=True, slots=True)
class Listing:
    """It is looked up which of the files are missing here. From here on the run is shown here, too."""


@dataclass(frozen=True, slots=True)
class Receiving:
    """The files that were missing come."""


@dataclass(frozen=True, slots=True)
class Copying:
    """Working copies are made and ports chosen."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The launch is waited for."""


@dataclass(frozen=True, slots=True)
class Running:
    """Trainers run."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Every trainer here has ended. How the run ends is the starter's to say, however long others train."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Nothing is left to do but to end trainers and to hear how the run ended."""

    verdict: Problem
    """How the run ends here if the starter does not say it."""
    starter_lost: bool = False
    """The starter will not say it any more."""
    concluded: bool = False
    """The last phase has been shown."""
    by: str = ""
    """Who ended it, where it was this laptop's user."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing follows."""


Stage = Invited | Asking | Listing | Receiving | Copying | Ready | Running | Trained | Leaving | Gone

# --- the state ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """A trainer's last one. ``cpu_s``: what its process had used when it was looked at first since."""

    at_s: float
    looked_s: float = 0.0
    cpu_s: float = 0.0
    held_told_s: float | None = None
    """When the starter was told last that it says nothing."""


@dataclass(frozen=True, slots=True)
class Participation:
    """The whole of what a participant knows of its part."""

    me: DeviceId
    plan: Plan
    manifest: Manifest
    starter_name: str
    checkpoint: Manifest | None = None
    """The files of the checkpoint with which the run resumes another."""
    texts: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """By path: what of the project came with the request, to be looked at."""
    stage: Stage = field(default_factory=Invited)
    shown: State = field(default_factory=State)
    """The mirrored run, to see that what the starter says can follow."""
    refusal: Problem | None = None
    """With which this laptop said no."""
    doing: Mapping[str, MemberPhase] = field(default_factory=lambda: MappingProxyType({}))
    """By task name, of trainers that run."""
    strategy: str = ""
    said_phase: tuple[MemberPhase, str] = ("waiting", "")
    found: OutputsFound | None = None
    """What the chief's script wrote, once that is known."""
    prepared: Prepared | None = None
    """What the starter was told when this laptop was ready."""
    outputs_taken: bool = False
    asked_force: int = -1
    """The highest force with which the starter asked trainers here to end; -1: it has not."""
    away_s: float | None = None
    """Since then nothing comes from the starter, and it is waited for."""
    resuming: bool = False
    """It is there again, and will say what it has heard: nothing new may overtake what it missed."""
    heard: int = 0
    """The newest number among what the starter mirrored."""
    replay: Replay = field(default_factory=Replay)
    """What was reported."""
    stopped: frozenset[str] = frozenset()
    """Tasks whose process is stopped."""
    words: Mapping[str, Word] = field(default_factory=lambda: MappingProxyType({}))
    """By task: when its trainer said something last."""
    unix_s: float = 0.0
    """What to add to the clock of every step for Unix time."""
    waits: frozenset[Wait] = frozenset()

    def waiting(self, waits: frozenset[Wait]) -> Self:
        return replace(self, waits=waits)

    @property
    def joined(self) -> bool:
        """This user, or an earlier decision, allowed the run: it is shown here."""
        return not isinstance(self.stage, Invited | Asking)

    @property
    def unseen(self) -> bool:
        """The starter has shown nothing of the run here."""
        return not self.local and self.shown.run is None

    @property
    def unheard(self) -> bool:
        """The starter shows the run here once it hears of a yes: it has not, and so tells no last phase."""
        return self.joined and self.unseen

    @property
    def next_force(self) -> int:
        """The least force with which a further Stop does anything: the starter may have begun with more."""
        run = self.shown.run
        return self.asked_force + 1 if run is not None and isinstance(run.phase, Stopping) else 0

    @property
    def launched(self) -> bool:
        return isinstance(self.stage, Running | Trained | Leaving | Gone)

    @property
    def starter_lost(self) -> bool:
        return isinstance(self.stage, Leaving) and self.stage.starter_lost

    @property
    def local(self) -> bool:
        """The starter's own part: its screen already shows what the coordinator emits."""
        return self.plan.starter == self.me
