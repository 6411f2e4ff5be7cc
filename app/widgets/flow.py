"""Widgets in rows that wrap if there is no room: at any width and text size."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import GAP


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
        sizes = [_least(piece) for piece in self._shown()]
        return QSize(
            max((size.width() for size in sizes), default=0),
            max((size.height() for size in sizes), default=0),
        )

    def sizeHint(self) -> QSize:
        sizes = [_wanted(piece) for piece in self._shown()]
        width = sum(size.width() for size in sizes) + self.spacing * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

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

    def _shown(self) -> list[QWidget]:
        return [piece for piece in self._pieces if not piece.isHidden()]

    def _places(self, width: int) -> list[tuple[QWidget, QRect]]:
        gap, top = self.spacing, 0
        placed: list[tuple[QWidget, QRect]] = []
        lines = self._lines(width)
        for line in lines:
            sizes = [QSize(wide, _height(item, wide)) for item, wide in line]
            height = max(size.height() for size in sizes)
            used = sum(size.width() for size in sizes) + gap * (len(sizes) - 1)
            left = (width - used) // 2 if self._centred else 0
            for (item, wide), size in zip(line, sizes, strict=True):
                if self.right is not None and item is self.right and len(lines) == 1:
                    left += width - used
                down = 0 if self._equal else (height - size.height()) // 2
                size = QSize(wide, height) if self._equal else size
                placed.append((item, QRect(QPoint(left, top + down), size)))
                left += wide + gap
            top += height + gap
        return placed

    def _lines(self, width: int) -> list[list[tuple[QWidget, int]]]:
        """Each widget with its assigned width."""
        items, gap = self._shown(), self.spacing
        if self._equal and items:
            widest = max(_least(item).width() for item in items)
            columns = max(1, min(len(items), (width + gap) // (widest + gap)))
            columns = -(-len(items) // -(-len(items) // columns))  # no row much shorter than the others
            wide, left = divmod(width - gap * (columns - 1), columns)
            widths = [wide + (column < left) for column in range(columns)]
            return [
                list(zip(items[at : at + columns], widths, strict=False))
                for at in range(0, len(items), columns)
            ]
        lines: list[list[tuple[QWidget, int]]] = []
        room = 0
        for item in items:
            wide = min(_wanted(item).width(), width)
            if not lines or room < wide + gap:
                lines.append([])
                room = width + gap
            lines[-1].append((item, wide))
            room -= wide + gap
        return lines


def _height(piece: QWidget, width: int) -> int:
    return piece.heightForWidth(width) if piece.hasHeightForWidth() else _wanted(piece).height()


def _least(piece: QWidget) -> QSize:
    return piece.minimumSizeHint().expandedTo(piece.minimumSize()).boundedTo(piece.maximumSize())


def _wanted(piece: QWidget) -> QSize:
    return piece.sizeHint().expandedTo(_least(piece)).boundedTo(piece.maximumSize())
