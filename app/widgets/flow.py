"""Widgets in rows that wrap if there is no room: at any width and text size."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import GAP

MOST_WIDTHS = 8
"""Widths whose places are remembered: a layout pass asks for a few, again and again."""


class _Item(NamedTuple):
    """A shown widget, and the least and the wanted size that it gives."""

    piece: QWidget
    least: QSize
    wanted: QSize


Places = list[tuple[QWidget, QRect]]


class Flow(QWidget):
    """``equal``: as many equal columns as fit, at most one per widget, and rows of one height; else each
    widget has its own width. Hidden widgets take no room. ``right``: from this widget on, they stand at the
    right end if all fit into one row.

    Not a ``QLayout``: Qt would create its items, and Python hold what Qt may delete.
    """

    def __init__(self, *pieces: QWidget, equal: bool = False, right: QWidget | None = None) -> None:
        super().__init__()
        self._pieces: list[QWidget] = []
        self._equal = equal
        self._centred = False
        self._known: dict[int, Places] = {}
        """Places by width."""
        self._known_for: object = None
        """What the known places follow from."""
        self.right = right
        self.spacing = GAP
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        for piece in pieces:
            self.add(piece)

    def add(self, piece: QWidget) -> None:
        """Appends ``piece``."""
        hidden = piece.isHidden() and piece.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
        piece.setParent(self)
        piece.setVisible(not hidden)
        self._pieces.append(piece)
        self.updateGeometry()

    def clear(self) -> None:
        """Removes them for good. Hidden immediately: until Qt deletes them, they would stay drawn."""
        for piece in self._pieces:
            piece.hide()
            piece.deleteLater()
        self._pieces = []
        self._known, self._known_for = {}, None

    def centre(self, centred: bool) -> None:
        """Aligns each row in the middle, or at the left."""
        if centred != self._centred:
            self._centred = centred
            self._place()

    # --- what Qt asks of a widget --------------------------------------------------------------------------

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return max((place.bottom() + 1 for _, place in self._places(width)), default=0)

    def minimumSizeHint(self) -> QSize:
        items = self._shown()
        return QSize(
            max((item.least.width() for item in items), default=0),
            max((item.least.height() for item in items), default=0),
        )

    def sizeHint(self) -> QSize:
        items = self._shown()
        width = sum(item.wanted.width() for item in items) + self.spacing * max(0, len(items) - 1)
        return QSize(width, max((item.wanted.height() for item in items), default=0))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.updateGeometry()  # Qt does not tell a hidden widget that its children came and went
        self._place()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # one of them was added, removed or resized
            self.updateGeometry()
            self._place()
        return super().event(event)

    def _place(self) -> None:
        for piece, place in self._places(self.width()):
            piece.setGeometry(place)

    # --- where they go -------------------------------------------------------------------------------------

    def _shown(self) -> list[_Item]:
        return [_item(piece) for piece in self._pieces if not piece.isHidden()]

    def _places(self, width: int) -> Places:
        """Remembered until a hint changes: Qt tells a widget of its children's new hints late, or not at all
        while it is hidden, and asks for the same width hundreds of times in one layout pass."""
        items = self._shown()
        if any(item.piece.hasHeightForWidth() for item in items):
            return self._arranged(items, width)  # its height may change while its hints stay
        follows_from = items, self.spacing, self._centred, self.right
        if follows_from != self._known_for or len(self._known) >= MOST_WIDTHS:
            self._known, self._known_for = {}, follows_from
        if width not in self._known:
            self._known[width] = self._arranged(items, width)
        return self._known[width]

    def _arranged(self, items: list[_Item], width: int) -> Places:
        gap, top = self.spacing, 0
        placed: Places = []
        lines = self._lines(items, width)
        for line in lines:
            sizes = [QSize(wide, _height(item, wide)) for item, wide in line]
            height = max(size.height() for size in sizes)
            used = sum(size.width() for size in sizes) + gap * (len(sizes) - 1)
            left = (width - used) // 2 if self._centred else 0
            for (item, wide), size in zip(line, sizes, strict=True):
                if self.right is not None and item.piece is self.right and len(lines) == 1:
                    left += width - used
                down = 0 if self._equal else (height - size.height()) // 2
                size = QSize(wide, height) if self._equal else size
                placed.append((item.piece, QRect(QPoint(left, top + down), size)))
                left += wide + gap
            top += height + gap
        return placed

    def _lines(self, items: list[_Item], width: int) -> list[list[tuple[_Item, int]]]:
        """Each widget with its assigned width."""
        gap = self.spacing
        if self._equal and items:
            widest = max(item.least.width() for item in items)
            columns = max(1, min(len(items), (width + gap) // (widest + gap)))
            columns = -(-len(items) // -(-len(items) // columns))  # no row much shorter than the others
            wide, left = divmod(width - gap * (columns - 1), columns)
            widths = [wide + (column < left) for column in range(columns)]
            return [
                list(zip(items[at : at + columns], widths, strict=False))
                for at in range(0, len(items), columns)
            ]
        lines: list[list[tuple[_Item, int]]] = []
        room = 0
        for item in items:
            wide = min(item.wanted.width(), width)
            if not lines or room < wide + gap:
                lines.append([])
                room = width + gap
            lines[-1].append((item, wide))
            room -= wide + gap
        return lines


def _height(item: _Item, width: int) -> int:
    piece = item.piece
    return piece.heightForWidth(width) if piece.hasHeightForWidth() else item.wanted.height()


def _item(piece: QWidget) -> _Item:
    most = piece.maximumSize()
    least = piece.minimumSizeHint().expandedTo(piece.minimumSize()).boundedTo(most)
    return _Item(piece, least, piece.sizeHint().expandedTo(least).boundedTo(most))
