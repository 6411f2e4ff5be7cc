"""The first run: two steps that may be skipped. Name and pairing, then a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.bridge import Bridge
from app.theme import GAP
from app.views.view import View
from app.widgets.buttons import button
from app.widgets.card import Card, column, row
from app.widgets.findings import FindingsList
from app.widgets.inputs import NAME_BYTES, NameEdit
from app.widgets.labels import Label, faint, heading, name_for_readers, set_kind, title
from app.widgets.other_laptops import AddressCard, NearbyList
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from app.words.device_words import problem_of
from core.vocabulary.answers import Answer, Findings
from core.vocabulary.commands import ChangeSettings, Pair, RunDoctor
from core.vocabulary.events import Event, PairingEnded
from core.vocabulary.ids import DeviceId
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State
from core.vocabulary.text import plain

STEPS = 2
SETTLE_MS = 700
"""After the last letter of a name, before the others see it."""


class WelcomeView(View):
    """``finished(example)``: the example to train, or ``""``."""

    title = "Welcome"
    finished = Signal(str)

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._named = ""
        self._then: Callable[[], object] = _nothing
        """Called after the name is saved."""
        self._looked = False
        page = Page(
            "Welcome to Tandem",
            "Two laptops, one Keras script: they train it together.",
            characters=100,
            centred=True,
        )
        self.setLayout(column(page))
        self.step = Label("", "faint")
        page.head.addWidget(self.step)
        self.steps = QStackedWidget()
        for make in (self._meet_step, self._sample_step):
            self.steps.addWidget(make())
        self.problem = ProblemBox()
        self.skip = button("Skip these steps", lambda: self._finish(""), "quiet", name="skip")
        self.back = button("Back", lambda: self._go(-1), name="back")
        self.next = button("Next", self._next, "primary", name="next")
        page.add(self.steps, self.problem, row(self.skip, 1, self.back, self.next), 1)
        self._show_step()

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        if state.me is None:
            return
        if not self._looked:
            self._looked = True
            self.bridge.submit(RunDoctor(), self._on_findings)
        # Keep the text the person is typing.
        if self.name.text() == self._named:
            self.name.setText(state.me.name)
            self._named = state.me.name
        self.by_address.show_own(state.me.addresses)
        self.nearby.show_state(state)
        self._show_step()
        if any(isinstance(event, PairingEnded) and event.problem is None for event in events):
            self._go_on()

    # --- the steps -----------------------------------------------------------------------------------------

    def _meet_step(self) -> QWidget:
        """Name and partner on one page, so that one press of Pair is enough."""
        card = Card()
        self.name = NameEdit(NAME_BYTES)
        self.name.setObjectName("name")
        self.name.editingFinished.connect(lambda: self._named_then(_nothing))
        self.settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self.settle.timeout.connect(lambda: self._named_then(_nothing))
        self.name.textEdited.connect(self._settle)
        name_for_readers(self.name, "This laptop's name")
        self.findings = FindingsList()
        self.findings.hide()
        self.checking = faint("Checking the network…")
        card.add(heading("This laptop's name, as others see it"), self.name, self.checking, self.findings)
        pair = Card()
        self.nearby = NearbyList()
        self.nearby.pair_asked.connect(self._pair)
        self.by_address = AddressCard()
        self.by_address.asked.connect(
            lambda where: self._named_then(
                lambda: self.bridge.submit(Pair(address=where), self._on_address_answered)
            )
        )
        pair.add(
            heading("Pair with another laptop"),
            faint("Open Tandem there, too. Both show six digits; press Same on both.", wraps=True),
            self.nearby,
        )
        return _step(card, pair, self.by_address)

    def _sample_step(self) -> QWidget:
        card = Card()
        self.partners = title("Try it")
        words = Label(
            "Tandem comes with a small script that learns to read handwritten digits. Training it takes "
            "about a minute, on this laptop alone or with the paired ones, whose users are asked first.",
            wraps=True,
        )
        card.add(self.partners, words)
        self.train = button(
            "Train the digits", lambda: self._finish("digits"), "primary", name="train-sample"
        )
        card.body.addSpacing(GAP)
        card.add(row(self.train, 1))
        return _step(card)

    # --- going on ------------------------------------------------------------------------------------------

    def _next(self) -> None:
        if self.steps.currentIndex() == STEPS - 1:
            self._finish("")
        else:
            self._named_then(self._go_on)

    def _go_on(self) -> None:
        # Next may have been pressed twice before the answer came.
        if self.steps.currentIndex() == 0:
            self._go(1)

    def _pair(self, device: DeviceId) -> None:
        self._named_then(lambda: self.bridge.submit(Pair(device=device), self._on_answer))

    def _settle(self, text: str) -> None:
        """Only names that can be: nobody is told of a problem while typing."""
        if text.strip() and text.isprintable():
            self.settle.start()
        else:
            self.settle.stop()

    def _named_then(self, then: Callable[[], object]) -> None:
        """Saves a changed name first: the other laptop is to see the new one."""
        self.settle.stop()
        name = self.name.text().strip()
        if name == self._named:
            then()
            return
        change = SettingsChange(name=name)
        self._then = then
        self.bridge.submit(ChangeSettings(change=change), partial(self._on_named, name))

    def _on_named(self, name: str, answer: Answer) -> None:
        self._on_answer(answer)
        then, self._then = self._then, _nothing
        if problem_of(answer) is None:
            self._named = name
            then()

    def _on_answer(self, answer: Answer) -> None:
        self.problem.show_problem(problem_of(answer))

    def _on_address_answered(self, answer: Answer) -> None:
        self.by_address.show_problem(problem_of(answer))

    def _go(self, by: int) -> None:
        self.problem.show_problem(None)
        self.steps.setCurrentIndex(self.steps.currentIndex() + by)
        self._show_step()
        (self.train if self.steps.currentIndex() == STEPS - 1 else self.next).setFocus()

    def _show_step(self) -> None:
        at = self.steps.currentIndex()
        self.step.say(f"Step {at + 1} of {STEPS}")
        self.back.setVisible(at > 0)
        self.skip.setVisible(at < STEPS - 1)
        devices = self.bridge.state.devices.values()
        paired = [plain(device.shown_name, 40) for device in devices if device.paired]
        self.partners.say(f"Paired with {' and '.join(paired)}" if paired else "Try it")
        elsewhere = "Use my own script" if paired else "Not now"
        last = elsewhere if at == STEPS - 1 else "Next"
        # Each step has its own main action: pairing if somebody is there, training the sample.
        other = at == STEPS - 1 or (not paired and bool(devices))
        set_kind(self.next, "" if other else "primary")
        self.next.setText("Continue alone" if at == 0 and not paired else last)
        self.next.setAccessibleName(self.next.text())

    def leave(self) -> None:
        """Something else is more important now."""
        self._finish("")

    def _finish(self, example: str) -> None:
        name = self.name.text().strip()
        fits = name != self._named and name.isprintable()
        change = SettingsChange(first_run_done=True, name=name if name and fits else None)
        self.bridge.submit(ChangeSettings(change=change))
        self.finished.emit(example)

    def _on_findings(self, answer: Answer) -> None:
        if not isinstance(answer, Findings):
            self.checking.hide()
            self._on_answer(answer)
            return
        found = [each for each in answer.findings if each.topic == "network"]
        wrong = [each for each in found if each.level in ("warning", "error")]
        self.findings.show_findings(wrong)
        self.findings.setVisible(bool(wrong))
        # In the same place if all is well: nothing moves under the mouse.
        self.checking.say("✓ The network is fine.")
        self.checking.make("good")
        self.checking.setVisible(not wrong)


def _step(*cards: Card) -> QWidget:
    """Cards at their natural height, from the top."""
    step = QWidget()
    step.setLayout(column(*cards, 1, spacing=GAP))
    return step


def _nothing() -> None:
    """Default: nobody waits."""
