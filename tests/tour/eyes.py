"""The real window, and what somebody in front of it can see, told on stdout for each empty line on stdin.

    python -m tests.tour.eyes [--home DIR]

It only looks: where things are and what they say. What is done to them is done by mouse and keyboard.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

import msgspec
from PySide6.QtCore import QObject, QPoint, QRect, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QMenu,
    QScrollArea,
    QTableView,
    QWidget,
)

from tests.app.stray_windows import StrayWindows
from tests.tour.thing import Spot, Thing

MOST_ROWS = 60
_TEXTS = ("text", "currentText", "toPlainText")


class Eyes(QObject):
    """Created on the GUI thread; its own thread only forwards the questions."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(self._tell, Qt.ConnectionType.QueuedConnection)
        self._stray = _TellsStrayWindows()
        threading.Thread(target=self._read, name="eyes", daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self.asked.emit(line.rstrip("\n"))
        # The asking process is gone: end in order, as on a signal.
        os.kill(os.getpid(), signal.SIGTERM)

    def _tell(self, words: str) -> None:
        if words:
            self.do(words)
            return
        sys.stdout.buffer.write(msgspec.json.encode(look()) + b"\n")
        sys.stdout.buffer.flush()

    def do(self, words: str) -> None:
        """In this program only mouse and keyboard act."""
        raise ValueError(words)


class _TellsStrayWindows(StrayWindows):
    """On stderr, where the tour takes a traceback for a failure."""

    def on_found(self, name: str) -> None:
        raise AssertionError(f"{name} was shown as a window of its own")


def look() -> list[Thing]:
    """Everything on the screen now, from back to front."""
    found: list[Thing] = []
    for top in QApplication.topLevelWidgets():
        if top.isVisible():
            for widget in (top, *top.findChildren(QWidget)):
                if widget.isVisible():
                    found += _things(widget)
    return found


def _things(widget: QWidget) -> list[Thing]:
    thing = Thing(
        name=widget.objectName(),
        reader=widget.accessibleName(),
        kind=type(widget).__name__,
        inside=[each.objectName() for each in _parents(widget) if each.objectName()],
        text=_text(widget),
        enabled=widget.isEnabled(),
        checked=bool(_call(widget, "isChecked")),
        focused=widget.hasFocus(),
        reachable=_reachable(widget),
        spot=_spot(widget, widget.rect()),
        seen=_spot(widget, widget.visibleRegion().boundingRect()),
        scroller=_scroller(widget),
    )
    if isinstance(widget, QAbstractItemView) and not isinstance(widget, QHeaderView):
        return [thing, *_rows(widget)]
    if isinstance(widget, QMenu):
        entries = [
            Thing(kind="action", text=action.text(), spot=_spot(widget, widget.actionGeometry(action)))
            for action in widget.actions()
        ]
        return [thing, *entries]
    return [thing]


def _rows(view: QAbstractItemView) -> list[Thing]:
    model, root = view.model(), view.rootIndex()
    columns = view.horizontalHeader().count() if isinstance(view, QTableView) else 1
    rows = []
    for row in range(min(model.rowCount(root), MOST_ROWS) if model else 0):
        cells = [model.index(row, column, root) for column in range(columns)]
        # The screen reader's text of a cell includes its second line.
        words = " | ".join(
            str(cell.data(Qt.ItemDataRole.AccessibleTextRole) or cell.data() or "") for cell in cells
        )
        spot = _spot(view.viewport(), view.visualRect(cells[0]))
        rows.append(
            Thing(kind="row", name=view.objectName(), reader=view.accessibleName(), text=words, spot=spot)
        )
    return rows


def _parents(widget: QWidget) -> list[QWidget]:
    parents, parent = [], widget.parentWidget()
    while parent is not None:
        parents.append(parent)
        parent = parent.parentWidget()
    return parents


def _text(widget: QWidget) -> str:
    text = next((str(text) for name in _TEXTS if (text := _call(widget, name))), "")
    return text.replace("\u200b", "")  # an invisible break point in a path


def _call(widget: QWidget, name: str) -> object:
    method = getattr(widget, name, None)
    return method() if callable(method) else None


def _reachable(widget: QWidget) -> bool:
    """Whether a click in its middle would reach it, and no widget above it."""
    region = widget.visibleRegion()
    if region.isEmpty():
        return False
    middle = widget.mapToGlobal(widget.rect().center())
    met: object = QApplication.widgetAt(middle)
    if met is not None and not isinstance(met, QWidget):
        # Python's object of a deleted layout item, at whose address Qt now has a widget.
        return region.contains(widget.rect().center())
    return met is not None and (met is widget or widget.isAncestorOf(met))


def _scroller(widget: QWidget) -> Spot | None:
    for parent in _parents(widget):
        if isinstance(parent, QScrollArea):
            return _spot(parent, parent.rect())
    return None


def _spot(widget: QWidget, rect: QRect) -> Spot:
    corner: QPoint = widget.mapToGlobal(rect.topLeft())
    return Spot(corner.x(), corner.y(), max(rect.width(), 0), max(rect.height(), 0))


def main(make: Callable[[], Eyes] = Eyes) -> int:
    from app import desktop

    app = QApplication(["tandem"])
    eyes = make()
    eyes.setParent(app)
    return desktop.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
