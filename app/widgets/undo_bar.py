"""Undo for a removal: a button restores it for some seconds, then it is final."""

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
"""Long enough to read what is removed, and to reach the button."""


class UndoBar(QFrame):
    """Hidden while nothing is pending. An action still pending when this is destroyed is never carried
    out."""

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
        """Calls ``done`` after ``undo_ms``, or ``undone`` if the user changes their mind.

        Both replace pending calls: the time starts again.
        """
        self._done, self._undone = done, undone
        self.words.say(words)
        name_for_readers(self.undo, "Undo", words)
        name_for_readers(self, words)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))
        self._timer.start(self.undo_ms)

    def finish(self) -> None:
        """Carries out the pending action: nobody changed their mind."""
        self._end(self._done)

    def take_back(self) -> None:
        self._end(self._undone)

    def _end(self, then: Callable[[], None] | None) -> None:
        self._timer.stop()
        self._done = self._undone = None
        self.hide()
        if then is not None:
            then()
