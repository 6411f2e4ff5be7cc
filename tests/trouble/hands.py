"""The real window without a screen, with mouse and keyboard; tells what is on it (see ``tests.tour.eyes``).

    python -m tests.trouble.hands [--home DIR]

A line on stdin is a deed: *click 12 40*, *scroll 12 40 down*, *press ctrl+a*, *write some words*.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from tests.tour.eyes import Eyes, main

STEP = 120
"""One notch of a mouse wheel, in Qt's eighths of a degree."""


class Hands(Eyes):
    def do(self, words: str) -> None:
        deed, _, rest = words.partition(" ")
        match deed:
            case "click":
                widget, point = _under(rest)
                QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=widget.mapFromGlobal(point))
            case "scroll":
                widget, point = _under(rest)
                _turn_wheel(widget, point, -STEP if rest.endswith("down") else STEP)
            case "press":
                QTest.keySequence(_focused(), QKeySequence(rest))
            case "write":
                QTest.keyClicks(_focused(), rest)
            case _:
                super().do(words)


def _under(words: str) -> tuple[QWidget, QPoint]:
    x, y = map(int, words.split()[:2])
    widget = QApplication.widgetAt(x, y)
    assert widget is not None, f"nothing lies at {x}, {y}"
    return widget, QPoint(x, y)


def _focused() -> QWidget:
    """The focused widget. Focuses the window first, like a window manager, if nothing has the focus."""
    window = QApplication.activeWindow() or next(
        each for each in QApplication.topLevelWidgets() if each.isVisible() and each.isWindow()
    )
    window.activateWindow()
    assert QTest.qWaitForWindowActive(window)
    return QApplication.focusWidget() or window


def _turn_wheel(widget: QWidget, point: QPoint, angle: int) -> None:
    event = QWheelEvent(
        QPointF(widget.mapFromGlobal(point)),
        QPointF(point),
        QPoint(),
        QPoint(0, angle),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


if __name__ == "__main__":
    sys.exit(main(Hands))
