"""The pairing sheet: six digits to compare on both screens, over any other content."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QProgressBar, QWidget

from app.bridge import Bridge
from app.widgets.buttons import button
from app.widgets.card import fill, row
from app.widgets.labels import Label, name_for_readers
from app.widgets.problem_box import ProblemBox
from app.widgets.sheet import Sheet
from app.words.device_words import code_words, problem_of
from core.vocabulary.answers import Answer
from core.vocabulary.commands import AnswerPairing, CancelPairing, Pair
from core.vocabulary.events import Event, PairingBegan
from core.vocabulary.state import Pairing, State

UNDER_WAY = ("connecting", "comparing", "waiting")


class PairingSheet(Sheet):
    """Follows ``state.pairing``. ``incoming`` comes once when another laptop asks."""

    incoming = Signal(str)

    def __init__(self, bridge: Bridge, parent: QWidget) -> None:
        super().__init__(parent, "Pairing")
        self.setObjectName("pairing")
        self._bridge = bridge
        self._shown: Pairing | None = None
        self._seen_under_way = False
        self.heading = Label("", "title", wraps=True)
        self.words = Label("", wraps=True)
        self.code = Label("", "code")
        self.code.setObjectName("code")
        self.code.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.warning = ProblemBox()
        self.problem = ProblemBox()
        self.progress = QProgressBar()
        self.progress.setRange(0, 0)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Waiting")
        self.same = button("Same", lambda: self._answer(True), name="same")
        self.different = button("Different", lambda: self._answer(False), name="different")
        self.cancel = button("Cancel", lambda: self._bridge.submit(CancelPairing()), name="cancel-pairing")
        self.again = button("Try again", self._again, "primary", name="pair-again")
        self.done = button("Close", self.dismiss, name="close-pairing")
        fill(self.body, self.heading, self.warning, self.words, self.code, self.problem, self.progress)
        fill(self.body, row(self.cancel, 1, self.same, self.different, self.again, self.done))

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        pairing = state.pairing
        # A pairing that failed immediately begins and ends in the same batch.
        began = any(isinstance(event, PairingBegan) for event in events)
        self._seen_under_way = self._seen_under_way or began
        if pairing is self._shown:
            return
        before, self._shown = self._shown, pairing
        if pairing is None:
            self._seen_under_way = False
            self.shut()
            return
        under_way = pairing.stage in UNDER_WAY
        # Show an ending only if its beginning was seen; one from before this window opened is old news.
        if not under_way and not self._seen_under_way:
            return
        self._seen_under_way = True
        self._show(pairing)
        if not self.is_open:
            self.open()
        elif before is None or before.stage != pairing.stage:
            self.setFocus()
        if not under_way:
            self.done.setFocus()  # nothing is left to decide: Enter closes
        if pairing.incoming and under_way and (before is None or before.stage not in UNDER_WAY):
            self.incoming.emit(_name(pairing))

    @property
    def under_way(self) -> bool:
        """The other side waits for something."""
        return self._shown is not None and self._shown.stage in UNDER_WAY

    def dismiss(self) -> None:
        """The user has read the outcome."""
        self._seen_under_way = False
        self.shut()

    def on_escape(self) -> None:
        if self.under_way:
            self._bridge.submit(CancelPairing())
        else:
            self.dismiss()

    def _show(self, pairing: Pairing) -> None:
        name, stage = _name(pairing), pairing.stage
        comparing = stage == "comparing"
        self.heading.say(_heading(pairing, name))
        self.words.say_or_hide(_words(pairing, name))
        self.code.say(code_words(pairing.code))
        self.code.setVisible(stage in ("comparing", "waiting"))
        # Read digit by digit: a screen reader would read a number in the hundred thousands.
        self.code.setAccessibleName(f"The digits are {' '.join(pairing.code)}")
        self.warning.show_problem(pairing.warning if stage in ("comparing", "waiting") else None)
        self.problem.show_problem(pairing.problem)
        self.progress.setVisible(stage in ("connecting", "waiting"))
        self.same.setVisible(comparing)
        self.different.setVisible(comparing)
        if comparing:
            self.enable_soon(self.same, self.different)
        self.cancel.setVisible(stage in UNDER_WAY)
        self.again.setVisible(stage == "failed" and not pairing.incoming)
        self.done.setVisible(stage in ("failed", "done"))
        name_for_readers(self, self.heading.text(), self.words.text())

    def _answer(self, same: bool) -> None:
        # Only once: a double click's second click must not answer the next question.
        self.disable(self.same, self.different)
        self._bridge.submit(AnswerPairing(same=same), self._on_refused)

    def _again(self) -> None:
        pairing = self._shown
        if pairing is not None:
            again = Pair(device=pairing.device) if pairing.device else Pair(address=pairing.address)
            self._bridge.submit(again, self._on_refused)

    def _on_refused(self, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is not None:
            self.problem.show_problem(problem)
            self.done.show()


def _name(pairing: Pairing) -> str:
    return pairing.name or pairing.address or "another laptop"


def _heading(pairing: Pairing, name: str) -> str:
    match pairing.stage:
        case "connecting":
            return f"{name} wants to pair" if pairing.incoming else f"Asking {name}"
        case "comparing":
            return f"{name} wants to pair" if pairing.incoming else f"Pair with {name}"
        case "waiting":
            return f"Waiting for {name}"
        case "failed":
            return f"Not paired with {name}"
        case "done":
            return f"Paired with {name}"


def _words(pairing: Pairing, name: str) -> str:
    match pairing.stage:
        case "connecting":
            return "The digits come in a moment."
        case "comparing":
            return f"Look at both screens. Does {name} show the same six digits?"
        case "waiting":
            return f"You said they are the same. On {name} somebody has to press Same, too."
        case "failed":
            return ""
        case "done":
            return "The two laptops know each other from now on and can train together."
