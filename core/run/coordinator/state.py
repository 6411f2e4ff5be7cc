"""What the coordinator knows, hears and asks for: data. Its steps are in ``machine`` and ``ending``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Self

from core.run.draft import Shared
from core.run.replay import Replay
from core.runtime.timers import TimerFired
from core.speed.summary import Tally
from core.vocabulary import limits
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import From, Prepared
from core.vocabulary.phases import Exit, MemberPhase, Phase, Planning, Training
from core.vocabulary.plan import Plan, Role, Task
from core.vocabulary.waits import Stand, WaitsFor

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
class MemberLost:
    device: DeviceId
    problem: Problem


@dataclass(frozen=True, slots=True)
class MemberReturned:
    """There is a link to it again."""

    device: DeviceId


@dataclass(frozen=True, slots=True)
class StopWanted:
    """Somebody pressed Stop, on the device with this name."""

    by: str
    force: int


@dataclass(frozen=True, slots=True)
class WaitedOn:
    """The user was asked, and lets the run go on waiting."""


@dataclass(frozen=True, slots=True)
class NodeEnds:
    """Tandem is being closed on this laptop, whose name is ``by``."""

    by: str


@dataclass(frozen=True, slots=True)
class GivesWay:
    """To a run that was started elsewhere at the same moment: see ``core.run.precedence``."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Broke:
    """Tandem failed on this laptop while it dealt with the run."""

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
    | MemberLost
    | MemberReturned
    | StopWanted
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
class SendFiles:
    device: DeviceId
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TakeOutputs:
    """Bring the chief's outputs into the run's folder."""

    device: DeviceId
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Finish:
    """The last effect: nothing is waited for any more."""


OwnEffect = SendFiles | TakeOutputs | Finish
Effect = Shared | OwnEffect

# --- stages ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assembling:
    """Members are asked, receive the files and choose their ports."""


@dataclass(frozen=True, slots=True)
class Running:
    """Every member was told to start its trainers."""


@dataclass(frozen=True, slots=True)
class Releasing:
    """Who ends by itself has finished; what only served it was told to end, with ``force``."""

    force: int


@dataclass(frozen=True, slots=True)
class Halting:
    """Somebody pressed Stop on the device called ``by``. ``force`` is the highest that was asked for."""

    force: int
    by: str


@dataclass(frozen=True, slots=True)
class Draining:
    """Every trainer has ended; only the chief's outputs are waited for. ``halted``: Stop had been pressed."""

    halted: Halting | None


@dataclass(frozen=True, slots=True)
class Failing:
    """A trainer ended, perhaps because another one did: a better cause is waited for, for a moment."""

    cause: Problem


@dataclass(frozen=True, slots=True)
class Keeping:
    """Another member's script failed after some steps. The chief was asked to end, and keeps the weights."""

    cause: Problem


@dataclass(frozen=True, slots=True)
class Ending:
    """Every member was told that the run is over; trainers that still run are being killed."""

    cause: Problem | None
    """None: it was stopped."""
    weak: bool
    """``cause`` may be a consequence: a better one that is heard of now takes its place."""
    by: str | None
    """The device on which Stop was pressed, or Tandem closed."""


@dataclass(frozen=True, slots=True)
class Over:
    """The last phase has been told; nothing follows."""


Stage = Assembling | Running | Releasing | Halting | Draining | Failing | Keeping | Ending | Over
"""What the coordinator is doing; its ``phase`` is what screens are told of it."""

# --- the state ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A member as the coordinator knows it."""

    linked: bool = True
    joined: bool = False
    """Its user allows the run: from here on it sees every event."""
    prepared: Prepared | None = None
    phase: MemberPhase = "waiting"
    exits: Mapping[str, Exit] = field(default_factory=lambda: MappingProxyType({}))
    away_s: float | None = None
    """Since then nothing comes from it (``away_why``), and the run waits for it. Not ``linked``."""
    away_why: Problem | None = None
    back_s: float | None = None
    """When it was last there again; ``away_why`` stays."""
    heard: int = 0
    """The newest number among what it reported."""
    resuming: bool = False
    """It is there again, and will say what it has heard: nothing new may overtake what it missed."""
    may_ask_again: bool = False
    """For files: it was away while it got ready."""

    @property
    def takes_part(self) -> bool:
        """It is there, or may come back."""
        return self.linked or self.away_s is not None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a trainer does that takes long, as told at ``at_s``."""

    stand: Stand
    at_s: float


@dataclass(frozen=True, slots=True)
class Vigil:
    """What was told last of whom the run waits for, and when anything came forward last."""

    told: tuple[WaitsFor, ...] = ()
    told_s: float = 0.0
    progressed_s: float = 0.0
    come: int = 0
    """Bytes that had come then, of what is waited for."""
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Coordination:
    """The whole of what the coordinator knows of its run."""

    me: DeviceId
    plan: Plan
    manifest: Manifest
    source: str
    """The script's own folder, told to this laptop's own part alone."""
    parts: Mapping[DeviceId, Part]
    tally: Tally
    checkpoint: Manifest | None = None
    """The files of the checkpoint with which the run resumes another."""
    texts: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """By path: what of the project the others' users can look at before their yes."""
    stage: Stage = field(default_factory=Assembling)
    phase: Phase = field(default_factory=Planning)
    outputs: Literal["expected", "coming", "cut", "here"] = "expected"
    """Of the chief, in whatever stage. ``cut``: the link was lost midway, and they will be offered anew."""
    unix_s: float = 0.0
    """What to add to the clock of every step for Unix time."""
    waits: frozenset[Wait] = frozenset()
    replay: Replay = field(default_factory=Replay)
    """What was mirrored."""
    stands: Mapping[str, Heard] = field(default_factory=lambda: MappingProxyType({}))
    """By task name: trainers that wait, or may keep others waiting."""
    vigil: Vigil = field(default_factory=Vigil)

    def waiting(self, waits: frozenset[Wait]) -> Self:
        return replace(self, waits=waits)

    def name(self, device: DeviceId) -> str:
        return self.plan.member(device).name

    @property
    def stopped_by(self) -> str | None:
        """Where Stop was pressed first; None: nowhere."""
        match self.stage:
            case Halting(by=by) | Draining(halted=Halting(by=by)) | Ending(by=by):
                return by
        return None

    @property
    def next_force(self) -> int:
        """The least force with which a further Stop does anything."""
        match self.stage:
            case Halting(force=force) | Draining(halted=Halting(force=force)):
                return force + 1
        return 0

    @property
    def load_s(self) -> float:
        """The longest that TensorFlow may take to load on a member, and so that the others wait for it."""
        told = [part.prepared.load_s for part in self.parts.values() if part.prepared is not None]
        return max(map(limits.loading_s, told), default=limits.LOAD_S)

    @property
    def start_s(self) -> float:
        """From launch until every trainer has met the others."""
        away_s = self.plan.away_s if self.plan.redials else 0.0
        return self.load_s + max(self.load_s, away_s) + limits.START_MORE_S

    @property
    def exits(self) -> list[Exit]:
        return [end for part in self.parts.values() for end in part.exits.values()]

    @property
    def may_keep(self) -> bool:
        """The chief's trainer runs, and has weights that are worth it."""
        chief = self.plan.chief
        part = self.parts[chief.device]
        trains = isinstance(self.phase, Training) and self.plan.strategy == "managed"
        return trains and part.linked and chief.name not in part.exits

    @property
    def is_any_away(self) -> bool:
        return any(part.away_s is not None for part in self.parts.values())

    @property
    def lacks_outputs(self) -> bool:
        """The chief's laptop has nothing left to do but to give what the script wrote there."""
        device = self.plan.chief.device
        ended = self.parts[device].exits
        return self.outputs != "here" and all(task.name in ended for task in self.plan.tasks_of(device))

    def all_ended(self) -> bool:
        """Every trainer of a member that is linked or may come back."""
        return not self.unfinished()

    def unfinished(self) -> list[DeviceId]:
        """Members that are linked or may come back, with a trainer that has not ended."""
        found = []
        for device, part in self.parts.items():
            names = {task.name for task in self.plan.tasks_of(device)}
            if part.takes_part and not names <= set(part.exits):
                found.append(device)
        return found

    def own_enders(self) -> tuple[Task, ...]:
        """The tasks that end by themselves; the others serve them until they are stopped."""
        tasks = self.plan.tasks
        if any(task.role is Role.PS for task in tasks):
            return tasks[:1]
        return tuple(task for task in tasks if task.role is not Role.EVALUATOR)

    def enders_gone(self) -> bool:
        return all(task.name in self.parts[task.device].exits for task in self.own_enders())

    def served(self) -> bool:
        """Whatever ends by itself has finished."""
        ends = [self.parts[task.device].exits.get(task.name) for task in self.own_enders()]
        return all(end is not None and end.reason == "finished" for end in ends)


def coordinate(
    me: DeviceId,
    plan: Plan,
    manifest: Manifest,
    source: str,
    pressed_s: float,
    checkpoint: Manifest | None = None,
    texts: Mapping[str, bytes] = MappingProxyType({}),
) -> Coordination:
    """The state before ``Begun``. ``pressed_s``: when Train was pressed, on the clock of every step."""
    parts = {member.device: Part() for member in plan.members}
    return Coordination(
        me=me,
        plan=plan,
        manifest=manifest,
        source=source,
        parts=MappingProxyType(parts),
        tally=Tally(chief=plan.chief.device, pressed_s=pressed_s),
        checkpoint=checkpoint,
        texts=texts,
    )
