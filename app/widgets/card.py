"""A framed piece of a screen."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.labels import set_property

Piece = QWidget | QLayout | int
Box = TypeVar("Box", QHBoxLayout, QVBoxLayout)


class Card(QFrame):
    """``body`` takes the content, from top to bottom. ``framed`` False: a part of another card."""

    def __init__(self, parent: QWidget | None = None, *, framed: bool = True) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card" if framed else "")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(*((GAP + 4, GAP, GAP + 4, GAP) if framed else (0, 0, 0, 0)))
        self.body.setSpacing(GAP // 2)

    def choose(self, chosen: bool) -> None:
        """Framed in the accent colour."""
        set_property(self, "chosen", "true" if chosen else "false")


def row(*pieces: Piece, spacing: int = GAP) -> QHBoxLayout:
    """Widgets side by side; a number is a stretch."""
    return _filled(QHBoxLayout(), pieces, spacing)


def column(*pieces: Piece, spacing: int = GAP // 2) -> QVBoxLayout:
    """Widgets one below the other; a number is a stretch."""
    return _filled(QVBoxLayout(), pieces, spacing)


def _filled(layout: Box, pieces: tuple[Piece, ...], spacing: int) -> Box:
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


def take_out(layout: QLayout, widget: QWidget) -> None:
    """For good. Hidden at once: until Qt deletes it, it would be drawn where it was, and keep the focus."""
    layout.removeWidget(widget)
    widget.hide()
    widget.deleteLater()
