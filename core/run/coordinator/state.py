"""What the starter's machine knows, is told and asks for. Data only; the steps are in ``coordinator``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from core.run.draft import Send
from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.speed.summary import Tally
from core.vocabulary.errors import Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import From
from core.vocabulary.phases import Exit, MemberPhase, Phase, Planning
from core.vocabulary.plan import Plan

# --- told --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """The first event: the plan is made."""


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
class StopWanted:
    """Somebody pressed Stop, on the device with this name."""

    by: str
    force: int


@dataclass(frozen=True, slots=True)
class NodeEnds:
    """Tandem is being closed on this laptop, whose name is ``by``."""

    by: str


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


Told = (
    Begun
    | From
    | SendingFailed
    | MemberLost
    | StopWanted
    | NodeEnds
    | TimerFired[Wait]
    | OutputsCame
    | OutputsStored
    | OutputsFailed
)

# --- asked for ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendFiles:
    device: DeviceId
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """An event of the run for this node's screen and record."""

    event: RunEvent


@dataclass(frozen=True, slots=True)
class TakeOutputs:
    """Bring the chief's outputs into the run's folder."""

    device: DeviceId
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Over:
    """The last effect: nothing is waited for any more."""


Effect = Send | SendFiles | Emit | SetTimer[Wait] | CancelTimer[Wait] | TakeOutputs | Over

# --- known -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A member as the starter knows it."""

    linked: bool = True
    joined: bool = False
    """Its user allows the run: from here on it sees every event."""
    ports: Mapping[str, int] | None = None
    phase: MemberPhase = "waiting"
    exits: Mapping[str, Exit] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Coordination:
    """The whole of what the starter knows of its run."""

    me: DeviceId
    plan: Plan
    manifest: Manifest
    source: str
    """The script's own folder, told to the starter's own part alone."""
    parts: Mapping[DeviceId, Part]
    tally: Tally
    checkpoint: Manifest | None = None
    """The files of the checkpoint that the run goes on from."""
    phase: Phase = field(default_factory=Planning)
    waits: frozenset[Wait] = frozenset()
    launched: bool = False
    cause: Problem | None = None
    cause_is_weak: bool = False
    abandoned: bool = False
    stop: int = -1
    """The highest force asked for; -1: nobody pressed Stop."""
    stopped_by: str = ""
    servants: int = -1
    """The force with which tasks that only serve were told to end, once the others had finished."""
    outputs: Literal["expected", "coming", "here"] = "expected"


def coordinate(
    me: DeviceId,
    plan: Plan,
    manifest: Manifest,
    source: str,
    pressed_s: float,
    checkpoint: Manifest | None = None,
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
    )
