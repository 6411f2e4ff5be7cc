"""One step of a run's machine under way: its state, and the effects and waits so far. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Generic, Protocol, Self, TypeVar

from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.runtime.timers import CancelTimer, SetTimer
from core.speed.summary import counted
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition
from core.vocabulary.events import MirroredEvent, Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import MemberPhase, Phase, ended
from core.vocabulary.progress import LogLines
from core.vocabulary.state import apply
from core.vocabulary.traffic import Send

_ORDER: tuple[MemberPhase, ...] = ("starting", "meeting", "training", "stopping")


class HasWaits(Protocol):
    """A machine's state, as far as it names the running timers."""

    @property
    def waits(self) -> frozenset[Wait]: ...

    def waiting(self, waits: frozenset[Wait]) -> Self: ...


State = TypeVar("State", bound=HasWaits)
Effect = TypeVar("Effect")


class Turn(Generic[State, Effect]):
    """``state`` and the ``effects`` so far, in order. An event is itself an effect."""

    def __init__(self, state: State, now_s: float) -> None:
        self.state = state
        self.now_s = now_s
        self.effects: list[Effect | Send | Shown | SetTimer[Wait] | CancelTimer[Wait]] = []

    def send(self, device: DeviceId, message: Message) -> None:
        self.effects.append(Send(device, message))

    def emit(self, event: Shown) -> None:
        self.effects.append(event)

    def wait(self, name: Wait, seconds: float) -> None:
        """Begin a wait, or restart it."""
        self.state = self.state.waiting(self.state.waits | {name})
        self.effects.append(SetTimer(name, seconds))

    def cancel(self, *names: Wait) -> None:
        """Cancel these waits, as far as they are running."""
        for name in names:
            if name in self.state.waits:
                self.state = self.state.waiting(self.state.waits - {name})
                self.effects.append(CancelTimer(name))

    def fired(self, name: Wait) -> None:
        """The timer ran out: nothing to cancel."""
        self.state = self.state.waiting(self.state.waits - {name})


class CoordinatorTurn(Turn[co.Coordination, co.OwnEffect]):
    """A step of the coordinator."""

    def send(self, device: DeviceId, message: Message) -> None:
        if self.state.parts[device].linked:
            super().send(device, message)

    def share(self, event: MirroredEvent) -> None:
        """Show it on this screen, and mirror it to every other member that has joined."""
        self.state = replace(self.state, tally=counted(self.state.tally, event, self.now_s))
        self.emit(event)
        for device, part in self.state.parts.items():
            if part.joined and device != self.state.me:
                self.send(device, ms.EventTold(event=event))

    def show(self, phase: Phase) -> None:
        """Enter a new phase. This laptop's own part gets only the last one: its screen has the others."""
        self.state = replace(self.state, phase=phase)
        event = ev.RunPhaseChanged(run=self.state.plan.run, phase=phase)
        self.share(event)
        if ended(phase) and self.state.me in self.state.parts:
            self.send(self.state.me, ms.EventTold(event=event))

    def log(self, text: str) -> None:
        chief = self.state.chief
        lines = LogLines(task=chief.name, stream="tandem", text=text + "\n")
        self.share(ev.MemberLogged(run=self.state.plan.run, device=chief.device, lines=lines))

    def update_part(self, device: DeviceId, part: co.Part) -> None:
        self.state = replace(self.state, parts=MappingProxyType({**self.state.parts, device: part}))

    def enter(self, stage: co.Stage) -> None:
        self.state = replace(self.state, stage=stage)


class ParticipantTurn(Turn[pa.Participation, pa.OwnEffect]):
    """A step of a participant."""

    def enter(self, stage: pa.Stage) -> None:
        self.state = replace(self.state, stage=stage)

    def tell_starter(self, message: Message) -> None:
        self.send(self.state.plan.starter, message)

    def report(self, event: MirroredEvent) -> None:
        """Send it to the starter, which mirrors it to this screen, too; without a starter, just show it."""
        if self.state.starter_lost:
            self.show(event)
            return
        self.tell_starter(ms.EventTold(event=event))

    def show(self, event: MirroredEvent) -> None:
        """Show it on this screen only."""
        try:
            self.state = replace(self.state, shown=apply(self.state.shown, event))
        except IllegalTransition:
            return
        self.emit(event)

    def set_doing(self, doing: Mapping[str, MemberPhase]) -> None:
        """Note the phase of each trainer of this device, by task name."""
        self.state = replace(self.state, doing=MappingProxyType(dict(doing)))

    def report_doing(self) -> None:
        """Report the earliest phase of this device's trainers."""
        if self.state.doing:
            self.report_phase(min(self.state.doing.values(), key=_ORDER.index))

    def report_phase(
        self,
        phase: MemberPhase,
        *,
        words: str = "",
        done: int = 0,
        total: int = 0,
        rate_bytes_s: float = 0.0,
    ) -> None:
        state = self.state
        said = (phase, state.strategy)
        if said == state.said_phase and not total:
            return
        self.state = replace(state, said_phase=said)
        self.report(
            ev.MemberPhaseChanged(
                run=state.plan.run,
                device=state.me,
                phase=phase,
                words=words,
                done=done,
                total=total,
                rate_bytes_s=rate_bytes_s,
                strategy=state.strategy,
            )
        )

    def log(self, task: str, words: str, *, difference: bool = False) -> None:
        lines = LogLines(task=task, stream="tandem", text=words, difference=difference)
        self.report(ev.MemberLogged(run=self.state.plan.run, device=self.state.me, lines=lines))

    def settle(self, allowed: bool) -> None:
        """The question to this user is answered, or no longer open."""
        self.cancel("consent")
        self.state = replace(self.state, allowed=allowed)
        self.emit(ev.ConsentSettled(run=self.state.plan.run, allowed=allowed))
