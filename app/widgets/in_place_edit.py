"""A line of text edited in place: a button turns it into a field."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from app.widgets.labels import name_for_readers


class InPlaceEdit(QLineEdit):
    """Hidden until ``begin``; then it replaces ``shown``. ``kept(text)``: Enter, or the focus moved
    elsewhere; Esc restores the old text."""

    kept = Signal(str)

    def __init__(self, what: str, shown: QWidget, opener: QPushButton, most: int) -> None:
        """``what``: the field's name for screen readers. ``opener``: pressed to begin, and focused again
        afterwards. ``most``: maximum characters."""
        super().__init__()
        self._shown = shown
        self._opener = opener
        self._text = ""
        self._editing = False
        self.setMaxLength(most)
        self.setPlaceholderText(what)
        name_for_readers(self, what, "Enter keeps it, Esc leaves it as it was.")
        self.returnPressed.connect(self._keep)
        self.hide()

    def begin(self, text: str) -> None:
        self._editing = True
        self._text = text
        self.setText(text)
        self.selectAll()
        self._shown.hide()
        self._opener.hide()
        self.show()
        self.setFocus()

    def cancel(self) -> None:
        """Restores the old text; also called when another text takes the line's place."""
        self._end(self._text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Cancel):
            self.cancel()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._keep()

    def _keep(self) -> None:
        self._end(" ".join(self.text().split()))

    def _end(self, text: str) -> None:
        if not self._editing:
            return
        self._editing = False  # losing the focus ends it, too
        self._opener.show()
        self._shown.show()
        if self.hasFocus():
            self._opener.setFocus()
        self.hide()
        if text != self._text:
            self.kept.emit(text)
