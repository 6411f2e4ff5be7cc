"""A framed piece of a screen."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.labels import set_property


class Card(QFrame):
    """``body`` takes the content, from top to bottom."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(GAP + 4, GAP, GAP + 4, GAP)
        self.body.setSpacing(GAP // 2)

    def choose(self, chosen: bool) -> None:
        """Framed in the accent colour."""
        set_property(self, "chosen", "true" if chosen else "false")


def row(*pieces: QWidget | QLayout | int, spacing: int = GAP) -> QHBoxLayout:
    """Widgets side by side; a number is a stretch."""
    layout = QHBoxLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    for piece in pieces:
        if isinstance(piece, int):
            layout.addStretch(piece)
        elif isinstance(piece, QLayout):
            layout.addLayout(piece)
        else:
            layout.addWidget(piece)
    return layout


def column(*pieces: QWidget | QLayout | int, spacing: int = GAP // 2) -> QVBoxLayout:
    """Widgets one below the other; a number is a stretch."""
    layout = QVBoxLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    for piece in pieces:
        if isinstance(piece, int):
            layout.addStretch(piece)
        elif isinstance(piece, QLayout):
            layout.addLayout(piece)
        else:
            layout.addWidget(piece)
    return layout
