"""How far a run has come: state in words, bar, step, speed, time left, and what each member does."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar, QVBoxLayout

from app import run_words
from app.widgets.card import Card, row, take_out
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from core.speed.sentences import expected
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Stopping, Training
from core.vocabulary.state import Run

PARTS = 1000


class RunProgress(Card):
    """``show_run`` for each change; cheap where the words stay the same."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Progress")
        self.state = Label("", "heading")
        self.left = Label("", "faint")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, PARTS)
        self.bar.setFixedHeight(max(8, self.fontMetrics().height() // 2))
        name_for_readers(self.bar, "Progress")
        self.step = ElidedLabel("")
        self.logs = ElidedLabel("", "faint")
        self.members: dict[DeviceId, ElidedLabel] = {}
        self._members = QVBoxLayout()
        self._members.setSpacing(2)
        self.body.addLayout(row(self.state, 1, self.left))
        self.body.addWidget(self.bar)
        self.body.addWidget(self.step)
        self.body.addWidget(self.logs)
        self.body.addLayout(self._members)
        # Always in its place: one that came and went would resize the plots under it, which repaints them.
        self.waiting = ElidedLabel("", "warning")
        self.body.addWidget(self.waiting)
        # Comes once, with the first step, and stays.
        self.expected = Label("", wraps=True)
        self.advice = Label("", "warning", wraps=True)
        for label in (self.expected, self.advice):
            label.hide()
            self.body.addWidget(label)

    def show_run(self, run: Run, names: dict[DeviceId, str], waiting: str) -> None:
        """``waiting``: who waits for whom, if anybody does."""
        words = run_words.phase_words(run.phase)
        self.state.say(f"{words[:1].upper()}{words[1:]}" + ("" if isinstance(run.phase, Training) else "…"))
        progress = run.members[run.plan.chief.device].progress
        moving = progress is not None and isinstance(run.phase, Training | Stopping)
        part = run_words.fraction(progress) if moving and progress is not None else _received(run)
        # Without an end known there is no bar: one that moves for its own sake takes time from the training.
        self.bar.setVisible(part is not None)
        self._show_part(round(PARTS * (part or 0.0)))
        if progress is not None:
            step = run_words.step_words(progress)
            self.step.say(step[:1].upper() + step[1:])
            self.left.say(run_words.rate_words(progress))
            self.logs.say(run_words.logs_words(progress.logs))
        self.step.setVisible(progress is not None)
        self.logs.setVisible(progress is not None and bool(progress.logs))
        self.left.setVisible(moving)
        self._show_members(run, names, waiting)
        said = expected(run.expectation, run.plan, names)
        for label, words in ((self.expected, said.what), (self.advice, run_words.in_the_window(said.fix))):
            label.say(words)
            label.setVisible(bool(words))

    def _show_part(self, value: int) -> None:
        if value != self.bar.value():
            # By itself a bar is painted at once, apart from the words that change with it.
            self.bar.setUpdatesEnabled(False)
            self.bar.setValue(value)
            self.bar.setUpdatesEnabled(True)

    def _show_members(self, run: Run, names: dict[DeviceId, str], waiting: str) -> None:
        if list(self.members) != list(run.members):
            for label in self.members.values():
                take_out(self._members, label)
            self.members = {device: ElidedLabel("", "faint") for device in run.members}
            for label in self.members.values():
                self._members.addWidget(label)
        for device, label in self.members.items():
            task = run_words.tasks_words(run.plan, device)
            about = ", ".join(words for words in (task, run_words.share_words(run, device)) if words)
            about = f" ({about})" if about else ""
            label.say(f"{names[device]}{about} {run_words.member_words(run.members[device])}")
        self.waiting.say(waiting)


def _received(run: Run) -> float | None:
    """How much of the project's files the members have, while they receive them."""
    coming = [member for member in run.members.values() if member.phase == "receiving" and member.total]
    total = sum(member.total for member in coming)
    return sum(member.done for member in coming) / total if total else None
