"""One step of the starter's machine under way: what is known so far, and what has been asked for. Pure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from core.run.coordination import Coordination, Effect, Emit, Part, Send
from core.runtime.timers import CancelTimer, SetTimer
from core.speed.summary import counted
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Phase, ended
from core.vocabulary.progress import LogLines


class Turn:
    """``now`` is what is known so far, ``effects`` what is asked for so far."""

    def __init__(self, known: Coordination, now_s: float) -> None:
        self.now = known
        self.now_s = now_s
        self.effects: list[Effect] = []

    def part(self, device: DeviceId) -> Part:
        return self.now.parts[device]

    def name(self, device: DeviceId) -> str:
        return self.now.plan.member(device).name

    def unfinished(self) -> list[DeviceId]:
        """Linked members with a trainer that has not ended."""
        found = []
        for device, part in self.now.parts.items():
            names = {task.name for task in self.now.plan.tasks_of(device)}
            if part.linked and not names <= set(part.exits):
                found.append(device)
        return found

    def know(self, device: DeviceId, part: Part) -> None:
        self.now = replace(self.now, parts=MappingProxyType({**self.now.parts, device: part}))

    def send(self, device: DeviceId, message: Message) -> None:
        if self.part(device).linked:
            self.effects.append(Send(device, message))

    def emit(self, event: RunEvent) -> None:
        """For this screen, and mirrored to every member that has joined."""
        self.now = replace(self.now, tally=counted(self.now.tally, event, self.now_s))
        self.effects.append(Emit(event))
        for device, part in self.now.parts.items():
            if part.joined and device != self.now.me:
                self.send(device, ms.Mirrored(event=event))

    def enter(self, phase: Phase) -> None:
        self.now = replace(self.now, phase=phase)
        event = ev.RunPhaseChanged(run=self.now.plan.run, phase=phase)
        self.emit(event)
        if ended(phase) and self.now.me in self.now.parts:
            self.send(self.now.me, ms.Mirrored(event=event))

    def say(self, text: str) -> None:
        chief = self.now.plan.chief
        lines = LogLines(task=chief.name, stream="tandem", text=text + "\n")
        self.emit(ev.MemberLogged(run=self.now.plan.run, device=chief.device, lines=lines))

    def wait(self, wait: Wait, seconds: float) -> None:
        self.now = replace(self.now, waits=self.now.waits | {wait})
        self.effects.append(SetTimer(wait, seconds))

    def no_longer(self, wait: Wait) -> None:
        if wait in self.now.waits:
            self.now = replace(self.now, waits=self.now.waits - {wait})
            self.effects.append(CancelTimer(wait))
