"""What has been taken away, and a button that brings it back: for some seconds, then it is done for good."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QFrame

from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import row
from app.widgets.labels import Label, name_for_readers

UNDO_MS = 10_000
"""Long enough to read what goes, and to reach the button."""


class UndoBar(QFrame):
    """Hidden while nothing is pending. What is pending when it is destroyed is never done."""

    def __init__(self, *, undo_ms: int = UNDO_MS) -> None:
        super().__init__()
        self.undo_ms = undo_ms
        self._done: Callable[[], None] | None = None
        self._undone: Callable[[], None] | None = None
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.finish)
        self.setProperty("kind", "problem")
        self.setProperty("level", "note")
        self.words = Label(wraps=True)
        self.undo = button("Undo", self.take_back, "primary", name="undo")
        layout = row(self.words, self.undo)
        layout.setContentsMargins(GAP, GAP // 2, GAP, GAP // 2)
        layout.setStretch(0, 1)
        self.setLayout(layout)
        self.hide()

    @property
    def pending(self) -> bool:
        return self._done is not None

    def offer(self, words: str, done: Callable[[], None], undone: Callable[[], None]) -> None:
        """``done`` is called after ``undo_ms``, or ``undone`` where the user thinks better of it.

        Both take the place of those that are pending: the time begins anew.
        """
        self._done, self._undone = done, undone
        self.words.say(words)
        name_for_readers(self.undo, "Undo", words)
        name_for_readers(self, words)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))
        self._timer.start(self.undo_ms)

    def finish(self) -> None:
        """Nobody thought better of it."""
        self._end(self._done)

    def take_back(self) -> None:
        self._end(self._undone)

    def _end(self, then: Callable[[], None] | None) -> None:
        self._timer.stop()
        self._done = self._undone = None
        self.hide()
        if then is not None:
            then()
