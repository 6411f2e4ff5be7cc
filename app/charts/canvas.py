"""What curves are drawn on: pyqtgraph's own widget, its painting timed, moved by keys and pointed at."""

from __future__ import annotations

import time

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent

from app.charts.axes import RunAxis, ValueAxis

_KEYS = {
    Qt.Key.Key_Left: (-0.2, 1.0),
    Qt.Key.Key_Right: (0.2, 1.0),
    Qt.Key.Key_Plus: (0.0, 0.7),
    Qt.Key.Key_Equal: (0.0, 0.7),
    Qt.Key.Key_Minus: (0.0, 1 / 0.7),
}
"""What a key does to the x axis: shift by parts of its length, factor of its length."""


class Canvas(pg.PlotWidget):  # type: ignore[misc]
    """``moved``: somebody panned or zoomed. ``pointed``: at this place of the x axis, or None: nowhere."""

    moved = Signal()
    pointed = Signal(object)

    def __init__(self) -> None:
        # Its menu alone would take a third of the time.
        super().__init__(
            background=None,
            axisItems={"left": ValueAxis("left"), "bottom": RunAxis()},
            enableMenu=False,
        )
        self.paint_s = 0.0
        self._resized = QTimer(self, singleShot=True)
        self._resized.timeout.connect(lambda: super(Canvas, self).resizeEvent(None))
        self.hideButtons()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.getPlotItem().vb.sigRangeChangedManually.connect(lambda *_: self.moved.emit())

    @property
    def area(self) -> QRectF:
        """Where the curves are, in pixels of this widget."""
        return QRectF(self.getPlotItem().vb.sceneBoundingRect())

    def pixel(self, x: float, y: float) -> QPointF:
        """Where a point is drawn; ``y`` as drawn, a power of ten on a logarithmic scale."""
        area, ((left, right), (low, high)) = self.area, self.viewRange()
        return QPointF(
            area.left() + (x - left) / ((right - left) or 1.0) * area.width(),
            area.bottom() - (y - low) / ((high - low) or 1.0) * area.height(),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        began_s = time.thread_time()
        super().paintEvent(event)
        self.paint_s += time.thread_time() - began_s

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """Once for all the sizes that a turn brings: a card that fills line by line has many, and with each
        pyqtgraph makes its axes anew."""
        if event is None:  # pyqtgraph's own call, while it is made
            super().resizeEvent(None)
        else:
            self._resized.start(0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _KEYS:
            super().keyPressEvent(event)
            return
        shift, factor = _KEYS[Qt.Key(event.key())]
        left, right = self.viewRange()[0]
        middle, half = (left + right) / 2 + shift * (right - left), (right - left) * factor / 2
        self.setXRange(middle - half, middle + half, padding=0)
        self.moved.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        area, place = self.area, event.position()
        if area.contains(place) and area.width() > 0:
            left, right = self.viewRange()[0]
            self.pointed.emit(left + (place.x() - area.left()) / area.width() * (right - left))
        else:
            self.pointed.emit(None)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.pointed.emit(None)
