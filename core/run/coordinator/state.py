"""The coordinator's state, inputs and effects: data. Its steps are in ``machine`` and ``ending``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Self

from msgspec import structs

from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.speed.summary import Tally
from core.vocabulary import limits
from core.vocabulary.errors import Problem
from core.vocabulary.events import Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Listing, Manifest
from core.vocabulary.peer_messages import Prepare, Prepared
from core.vocabulary.phases import Exit, MemberPhase, Phase, Planning
from core.vocabulary.plan import Plan, Task
from core.vocabulary.traffic import From, LinkNews, Send
from core.vocabulary.waits import TrainerStatus, WaitsFor

# --- inputs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """The first input: the plan is made."""


@dataclass(frozen=True, slots=True)
class SendingFailed:
    """The project's files cannot be sent to a member."""

    device: DeviceId
    problem: Problem


@dataclass(frozen=True, slots=True)
class StopWanted:
    """Somebody pressed Stop, on the device with this name."""

    by: str
    force: int


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Stop at the end of a step, to go on at once with these laptops as well, by name. ``elsewhere``: another
    laptop goes on, and waits for this run's end."""

    back: tuple[str, ...]
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class WaitedOn:
    """The user was asked, and lets the run go on waiting."""


@dataclass(frozen=True, slots=True)
class NodeEnds:
    """Tandem is being closed on this laptop, whose name is ``by``."""

    by: str


@dataclass(frozen=True, slots=True)
class GivesWay:
    """Yield to a run that was started elsewhere at the same moment: see ``core.run.precedence``."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Broke:
    """Tandem failed on this laptop while handling the run."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class OutputsCame:
    """A piece of the outputs came: a sign of life."""


@dataclass(frozen=True, slots=True)
class OutputsStored:
    """Every output file is in the run's folder."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputsFailed:
    problem: Problem


Input = (
    Begun
    | From
    | SendingFailed
    | LinkNews
    | StopWanted
    | GoesOn
    | WaitedOn
    | NodeEnds
    | GivesWay
    | Broke
    | TimerFired[Wait]
    | OutputsCame
    | OutputsStored
    | OutputsFailed
)

# --- effects -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferFiles:
    """``listing``: only the manifest, which is too long for a message."""

    device: DeviceId
    listing: Listing | None = None


@dataclass(frozen=True, slots=True)
class TakeOutputs:
    """Bring the chief's outputs into the run's folder."""

    device: DeviceId
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Finish:
    """The last effect: no waits remain."""


OwnEffect = OfferFiles | TakeOutputs | Finish
Effect = OwnEffect | Send | Shown | SetTimer[Wait] | CancelTimer[Wait]

# --- stages ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assembling:
    """Members are asked, receive the files and choose their ports."""


@dataclass(frozen=True, slots=True)
class Running:
    """Every member was told to start its trainers."""


@dataclass(frozen=True, slots=True)
class Releasing:
    """The tasks that end without a stop have finished; the ones that served them were told to end, with
    ``force``."""

    force: int


@dataclass(frozen=True, slots=True)
class Halting:
    """Somebody pressed Stop on the device called ``by``. ``force`` is the highest that was requested."""

    force: int
    by: str


@dataclass(frozen=True, slots=True)
class Draining:
    """Every trainer has ended; only the chief's outputs are missing. ``halted``: Stop had been pressed."""

    halted: Halting | None


@dataclass(frozen=True, slots=True)
class Failing:
    """A trainer ended, perhaps because another one did: wait a moment for a better cause. ``weak`` False: by
    an error of its own, before the first step; wait for the others to end by the same one."""

    cause: Problem
    weak: bool = True


@dataclass(frozen=True, slots=True)
class Keeping:
    """Another member's script failed after some steps. The chief was asked to end and saves the weights."""

    cause: Problem


@dataclass(frozen=True, slots=True)
class Ending:
    """Every member was told that the run is over; trainers that still run are being killed."""

    cause: Problem | None
    """None: it was stopped."""
    weak: bool
    """``cause`` may be a consequence: a better one that arrives now replaces it."""
    by: str | None
    """The device on which Stop was pressed, or Tandem closed."""


@dataclass(frozen=True, slots=True)
class Over:
    """The last phase has been reported; nothing follows."""


Stage = Assembling | Running | Releasing | Halting | Draining | Failing | Keeping | Ending | Over
"""The coordinator's current activity; screens see its ``phase``."""

# --- the state ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A member as the coordinator knows it."""

    linked: bool = True
    """Messages to it arrive, sooner or later."""
    takes_part: bool = True
    """The member is there, or waited for."""
    left: bool = False
    """The member is gone for good, and the others go on without it: only its trainers' ends still count."""
    joined: bool = False
    """The member's user allowed the run: from here on it sees every event."""
    prepared: Prepared | None = None
    phase: MemberPhase = "waiting"
    exits: Mapping[str, Exit] = field(default_factory=lambda: MappingProxyType({}))
    away_s: float | None = None
    """Since when it is silent (``away_why``) and the run waits for it."""
    away_why: Problem | None = None
    back_s: float | None = None
    """When it last returned; ``away_why`` stays."""

    @property
    def is_there(self) -> bool:
        return self.linked and self.takes_part and self.away_s is None


@dataclass(frozen=True, slots=True)
class Heard:
    """A trainer's long activity, as reported at ``at_s``."""

    status: TrainerStatus
    at_s: float


@dataclass(frozen=True, slots=True)
class LastReport:
    """The last report about members waited for, and the time of the last progress."""

    waits: tuple[WaitsFor, ...] = ()
    at_s: float = 0.0
    progressed_s: float = 0.0
    come_bytes: int = 0
    """Received by then of what is waited for."""
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Coordination:
    """A run as its starter sees it."""

    me: DeviceId
    plan: Plan
    request: Prepare
    """The request to this laptop's own part. Others get it without this laptop's paths: ``for_others``."""
    parts: Mapping[DeviceId, Part]
    tally: Tally
    receiver: DeviceId | None = None
    """The member that most recently began to receive files."""
    stage: Stage = field(default_factory=Assembling)
    phase: Phase = field(default_factory=Planning)
    back: tuple[str, ...] | None = None
    """Not None: it stops only to go on at once, with these laptops as well."""
    falls_back: bool = False
    """It goes on automatically: without a first step it is tried again without ``left_out``, and has not
    failed."""
    outputs: Literal["expected", "coming", "here"] = "expected"
    """Whether the chief's outputs have come, in whatever stage."""
    unix_offset_s: float = 0.0
    """Unix time minus the clock of every step."""
    waits: frozenset[Wait] = frozenset()
    statuses: Mapping[str, Heard] = field(default_factory=lambda: MappingProxyType({}))
    """Trainers that wait, or may keep others waiting, by task name."""
    last_report: LastReport = field(default_factory=LastReport)

    def waiting(self, waits: frozenset[Wait]) -> Self:
        return replace(self, waits=waits)

    def name(self, device: DeviceId) -> str:
        return self.plan.member(device).name

    @property
    def chief(self) -> Task:
        """The chief among the present members."""
        return self.plan.chief_without([device for device, part in self.parts.items() if part.left])

    @property
    def left_out(self) -> list[DeviceId]:
        """Other laptops that came back for this run, or were lost in it, if it came to no first step."""
        resume = self.plan.resume
        if not self.falls_back or resume is None or self.tally.first is not None:
            return []
        others = [(each, part) for each, part in self.parts.items() if each != self.me]
        return [each for each, part in others if self.name(each) in resume.back or not part.takes_part]

    @property
    def stopped_by(self) -> str | None:
        """The name of the laptop on which Stop was pressed first; None: on none."""
        match self.stage:
            case Halting(by=by) | Draining(halted=Halting(by=by)) | Ending(by=by):
                return by
        return None

    @property
    def next_force(self) -> int:
        """The least force with which a further Stop has an effect."""
        match self.stage:
            case Halting(force=force) | Draining(halted=Halting(force=force)):
                return force + 1
        return 0

    @property
    def load_s(self) -> float:
        """The longest time that TensorFlow may take to load on a member; the others wait as long."""
        told = [part.prepared.load_s for part in self.parts.values() if part.prepared is not None]
        return max(map(limits.loading_s, told), default=limits.LOAD_S)

    @property
    def start_s(self) -> float:
        """The longest time from the launch until every trainer has connected to the others."""
        away_s = self.plan.away_s if self.plan.redials else 0.0
        return self.load_s + max(self.load_s, away_s) + limits.START_MORE_S

    @property
    def exits(self) -> list[Exit]:
        return [end for part in self.parts.values() if not part.left for end in part.exits.values()]

    @property
    def is_any_away(self) -> bool:
        return any(part.away_s is not None for part in self.parts.values())

    @property
    def lacks_outputs(self) -> bool:
        """Whether the chief's laptop only has the script's outputs left to send."""
        return self.outputs != "here" and self.has_ended(self.chief.device)

    def all_ended(self) -> bool:
        """Whether every trainer of members that are linked or may come back has ended."""
        return not self.unfinished()

    def unfinished(self) -> list[DeviceId]:
        """Members that are linked or may come back, with a trainer that has not ended."""
        return [each for each, part in self.parts.items() if part.takes_part and not self.has_ended(each)]

    def has_ended(self, device: DeviceId) -> bool:
        """Whether all of its trainers have ended."""
        return all(task.name in self.parts[device].exits for task in self.plan.tasks_of(device))


def for_others(request: Prepare) -> Prepare:
    """The request without paths of this laptop, and short enough for a message."""
    files = request.manifest
    manifest = files if request.listing is None else Manifest(script=files.script, files=())
    return structs.replace(request, manifest=manifest, source="", written_at="")


def coordinate(me: DeviceId, request: Prepare, pressed_s: float, *, falls_back: bool = False) -> Coordination:
    """The state before ``Begun``. ``pressed_s``: when Train was pressed, on the clock of every step."""
    plan = request.plan
    parts = MappingProxyType({member.device: Part() for member in plan.members})
    tally = Tally(chief=plan.chief.device, pressed_s=pressed_s)
    return Coordination(me, plan, request, parts, tally, falls_back=falls_back)
