"""A framed piece of a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.labels import set_property

Piece = QWidget | QLayout | int
Box = TypeVar("Box", bound=QBoxLayout)
K = TypeVar("K")
W = TypeVar("W", bound=QWidget)


class Card(QFrame):
    """``body`` takes the content. ``framed`` False: a section of another card."""

    def __init__(self, *, framed: bool = True) -> None:
        super().__init__()
        self.setProperty("kind", "card" if framed else "")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(*((GAP + 4, GAP, GAP + 4, GAP) if framed else (0, 0, 0, 0)))
        self.body.setSpacing(GAP // 2)

    def add(self, *pieces: Piece) -> None:
        """Adds from top to bottom; a number is a stretch."""
        fill(self.body, *pieces)

    def choose(self, chosen: bool) -> None:
        """Frames it in the accent colour."""
        set_property(self, "chosen", "true" if chosen else "false")


def row(*pieces: Piece, spacing: int = GAP) -> QHBoxLayout:
    """Widgets side by side; a number is a stretch."""
    return _bare(QHBoxLayout(), spacing, pieces)


def column(*pieces: Piece, spacing: int = GAP // 2) -> QVBoxLayout:
    """Widgets one below the other; a number is a stretch."""
    return _bare(QVBoxLayout(), spacing, pieces)


def _bare(layout: Box, spacing: int, pieces: tuple[Piece, ...]) -> Box:
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    return fill(layout, *pieces)


def fill(layout: Box, *pieces: Piece) -> Box:
    """Appends to the layout's content."""
    for piece in pieces:
        if isinstance(piece, int):
            layout.addStretch(piece)
        elif isinstance(piece, QLayout):
            layout.addLayout(piece)
        else:
            layout.addWidget(piece)
    return layout


def take_out(layout: QLayout, widget: QWidget) -> None:
    """Removes it for good. Hidden immediately: until Qt deletes it, it would stay drawn and keep the
    focus."""
    layout.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


class ByKey(dict[K, W]):
    """Widgets of ``layout``, one per key: made once, and kept while the key is present, along with the
    keyboard focus in one of them."""

    def __init__(self, layout: QBoxLayout, make: Callable[[K], W]) -> None:
        super().__init__()
        self._layout, self._make = layout, make

    def keep(self, keys: Iterable[K]) -> bool:
        """Shows the widgets of ``keys``, in this order; deletes the others. True if that changed anything."""
        wanted = list(keys)
        if wanted == list(self):
            return False
        for gone in self.keys() - set(wanted):
            take_out(self._layout, self.pop(gone))
        kept = {key: self[key] if key in self else self._make(key) for key in wanted}
        self.clear()
        for key, widget in kept.items():
            self[key] = widget
            self._layout.removeWidget(widget)
            self._layout.addWidget(widget)
        return True
