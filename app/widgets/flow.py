"""Widgets side by side that go on in the next row where there is no room, as large letters need it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from app.theme import GAP


class Flow(QLayout):
    """Each as wide as it wishes; those that are hidden take no room. ``last`` stands at the right end."""

    def __init__(self, *widgets: QWidget, last: QWidget | None = None, spacing: int = GAP) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._last = last
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)
        for widget in (*widgets, *((last,) if last is not None else ())):
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), place=False)

    def sizeHint(self) -> QSize:
        shown = [item.sizeHint() for item in self._items if not item.isEmpty()]
        width = sum(hint.width() for hint in shown) + self.spacing() * max(0, len(shown) - 1)
        return QSize(width, max((hint.height() for hint in shown), default=0))

    def minimumSize(self) -> QSize:
        shown = [item.minimumSize() for item in self._items if not item.isEmpty()]
        return QSize(
            max((least.width() for least in shown), default=0),
            max((least.height() for least in shown), default=0),
        )

    def setGeometry(self, area: QRect) -> None:
        super().setGeometry(area)
        self._arrange(area, place=True)

    def _arrange(self, area: QRect, *, place: bool) -> int:
        """The height that it takes."""
        x, y, high = area.left(), area.top(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            hint = item.sizeHint()
            if x > area.left() and x + hint.width() > area.left() + area.width():
                x, y, high = area.left(), y + high + self.spacing(), 0
            left = area.left() + area.width() - hint.width() if item.widget() is self._last else x
            if place:
                item.setGeometry(QRect(QPoint(max(x, left), y), hint))
            x, high = x + hint.width() + self.spacing(), max(high, hint.height())
        return y + high - area.top()
