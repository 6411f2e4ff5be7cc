"""What the two machines of a run share: a step under way, and the effects that both ask for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from core.runtime.timers import CancelTimer, SetTimer
from core.vocabulary.events import ConsentAsked, ConsentSettled, RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message


@dataclass(frozen=True, slots=True)
class Send:
    """To the other side of a run; where that is this very node, over the loopback."""

    device: DeviceId
    message: Message


Shown = RunEvent | ConsentAsked | ConsentSettled
"""For this node's screen and record: an event is an effect by itself, without a wrapper."""
Shared = Send | Shown | SetTimer[Wait] | CancelTimer[Wait]


class Waiting(Protocol):
    """A machine's state, as far as it names the timers that run."""

    @property
    def waits(self) -> frozenset[Wait]: ...

    def waiting(self, waits: frozenset[Wait]) -> Self: ...


State = TypeVar("State", bound=Waiting)
Effect = TypeVar("Effect")


class Draft(Generic[State, Effect]):
    """The working copy of one step: ``state`` so far, and the ``effects`` asked for so far, in order."""

    def __init__(self, state: State, now_s: float) -> None:
        self.state = state
        self.now_s = now_s
        self.effects: list[Effect | Shared] = []

    def send(self, device: DeviceId, message: Message) -> None:
        self.effects.append(Send(device, message))

    def emit(self, event: Shown) -> None:
        self.effects.append(event)

    def wait(self, name: Wait, seconds: float) -> None:
        """Begin a wait, or begin it anew."""
        self.state = self.state.waiting(self.state.waits | {name})
        self.effects.append(SetTimer(name, seconds))

    def no_longer(self, *names: Wait) -> None:
        """Call off those of these waits that run."""
        for name in names:
            if name in self.state.waits:
                self.state = self.state.waiting(self.state.waits - {name})
                self.effects.append(CancelTimer(name))

    def fired(self, name: Wait) -> None:
        """The timer ran out: nothing is to be called off."""
        self.state = self.state.waiting(self.state.waits - {name})
