"""A section of a screen that stays folded until somebody opens it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.buttons import button, escape_mnemonic
from app.widgets.card import column, row

CLOSED, OPEN = "▸", "▾"


class Fold(QWidget):
    """``body`` takes the content."""

    unfolded = Signal(bool)

    def __init__(self, title: str, *, name: str = "") -> None:
        super().__init__()
        self._title = title
        self.head = button(title, lambda: None, "quiet", name=name)
        self.head.setCheckable(True)
        self.head.toggled.connect(self._toggle)
        self._inner = QWidget()
        self._inner.hide()
        self.body = QVBoxLayout(self._inner)
        self.body.setContentsMargins(GAP, 0, 0, 0)
        self.setLayout(column(row(self.head, 1), self._inner))
        self._show_arrow(False)

    @property
    def is_open(self) -> bool:
        return self.head.isChecked()

    def rename(self, title: str) -> None:
        self._title = title
        self._show_arrow(self.is_open)

    def _toggle(self, unfolded: bool) -> None:
        self._show_arrow(unfolded)
        self._inner.setVisible(unfolded)
        self.unfolded.emit(unfolded)

    def _show_arrow(self, unfolded: bool) -> None:
        self.head.setText(f"{OPEN if unfolded else CLOSED} {escape_mnemonic(self._title)}")
        self.head.setAccessibleName(self._title)
        self.head.setAccessibleDescription("unfolded" if unfolded else "folded")
