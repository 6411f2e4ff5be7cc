"""Widgets side by side that go on in the next line where there is no room: at any width and size of text."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from app.theme import GAP


class Flow(QLayout):
    """``equal``: as many columns of one width as fit, at most as many as there are widgets, and lines of one
    height; else each widget has its own width. Hidden widgets take no room. ``right``: from this widget on
    they stand at the right end, where all fit into one line."""

    def __init__(self, *pieces: QWidget, equal: bool = False, right: QWidget | None = None) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._equal = equal
        self._centred = False
        self.right = right
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(GAP)
        for piece in pieces:
            self.addWidget(piece)

    def centre(self, centred: bool) -> None:
        """Each line in the middle, or at the left."""
        if centred != self._centred:
            self._centred = centred
            self.invalidate()

    # --- what Qt asks of a layout --------------------------------------------------------------------------

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        return max((place.bottom() + 1 for _, place in places), default=0)

    def minimumSize(self) -> QSize:
        sizes = [item.minimumSize() for item in self._shown()]
        return QSize(
            max((size.width() for size in sizes), default=0),
            max((size.height() for size in sizes), default=0),
        )

    def sizeHint(self) -> QSize:
        sizes = [item.sizeHint() for item in self._shown()]
        width = sum(size.width() for size in sizes) + self.spacing() * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in self._places(rect.width()):
            item.setGeometry(place.translated(rect.topLeft()))

    # --- where they go -------------------------------------------------------------------------------------

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _places(self, width: int) -> list[tuple[QLayoutItem, QRect]]:
        gap, top = self.spacing(), 0
        placed: list[tuple[QLayoutItem, QRect]] = []
        lines = self._lines(width)
        for line in lines:
            sizes = [QSize(wide, _height(item, wide)) for item, wide in line]
            height = max(size.height() for size in sizes)
            used = sum(size.width() for size in sizes) + gap * (len(sizes) - 1)
            left = (width - used) // 2 if self._centred else 0
            for (item, wide), size in zip(line, sizes, strict=True):
                if self.right is not None and item.widget() is self.right and len(lines) == 1:
                    left += width - used
                down = 0 if self._equal else (height - size.height()) // 2
                size = QSize(wide, height) if self._equal else size
                placed.append((item, QRect(QPoint(left, top + down), size)))
                left += wide + gap
            top += height + gap
        return placed

    def _lines(self, width: int) -> list[list[tuple[QLayoutItem, int]]]:
        """Each with the width that it gets."""
        items, gap = self._shown(), self.spacing()
        if self._equal and items:
            widest = max(item.minimumSize().width() for item in items)
            columns = max(1, min(len(items), (width + gap) // (widest + gap)))
            columns = -(-len(items) // -(-len(items) // columns))  # no line much shorter than the others
            wide, left = divmod(width - gap * (columns - 1), columns)
            widths = [wide + (column < left) for column in range(columns)]
            return [
                list(zip(items[at : at + columns], widths, strict=False))
                for at in range(0, len(items), columns)
            ]
        lines: list[list[tuple[QLayoutItem, int]]] = []
        room = 0
        for item in items:
            wide = min(item.sizeHint().width(), width)
            if not lines or room < wide + gap:
                lines.append([])
                room = width + gap
            lines[-1].append((item, wide))
            room -= wide + gap
        return lines


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()
