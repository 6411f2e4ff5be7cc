"""A core with nothing behind it: records commands, gives scripted answers, and folds events by the real
rule."""

from __future__ import annotations

from collections.abc import Callable

from app.bridge import Bridge
from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, Done
from core.vocabulary.commands import Command
from core.vocabulary.state import State, apply


class FakeCore:
    """``answers``: by command type, an answer or its factory; ``Done`` by default.

    ``held``: while True, answers wait until ``release``.
    """

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.state = State()
        self.commands: list[Command] = []
        self.answers: dict[type, Answer | Callable[[Command], Answer]] = {}
        self.held = False
        self._waiting: list[Callable[[], None]] = []
        bridge.attach(self)

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        self.commands.append(command)
        answer = self.answers.get(type(command), Done())
        made = answer(command) if callable(answer) else answer
        if self.held:
            self._waiting.append(lambda: on_answer(made))
        else:
            on_answer(made)

    def release(self) -> None:
        self.held = False
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer()

    def happen(self, *events: ev.Event) -> None:
        """The events reach the screens before this returns."""
        for event in events:
            self.state = apply(self.state, event)
            self.bridge.deliver(event, self.state)
        self.flush()

    def flush(self) -> None:
        """Delivers pending events to the GUI thread now."""
        self.bridge._flush()

    def asked(self, kind: type) -> list[Command]:
        """The commands of one type, in order."""
        return [command for command in self.commands if isinstance(command, kind)]
