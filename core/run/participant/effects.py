"""What the participant's machine asks of its driver: data."""

from __future__ import annotations

from dataclasses import dataclass

from core.runtime.timers import CancelTimer, SetTimer
from core.vocabulary.events import Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import MEET_S, Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Send
from core.vocabulary.plan import Plan
from core.vocabulary.trainer_messages import Order


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
class LookAtTrainers:
    """Check whether their processes are stopped. Answer: ``TrainersSeen``."""


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


OwnEffect = (
    ListMissing
    | FetchFrom
    | GiveTo
    | MakeReady
    | StartTrainers
    | StopTrainers
    | OrderTrainers
    | LookAtTrainers
    | FindOutputs
    | SendOutputs
    | Leave
)
Effect = OwnEffect | Send | Shown | SetTimer[Wait] | CancelTimer[Wait]
