"""The canvas for curves: pyqtgraph's widget with timed painting, keyboard panning and a pointer signal."""

from __future__ import annotations

import time
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent, QWheelEvent

from app.charts.axes import RunAxis, ValueAxis

_KEYS = {
    Qt.Key.Key_Left: (-0.2, 1.0),
    Qt.Key.Key_Right: (0.2, 1.0),
    Qt.Key.Key_Plus: (0.0, 0.7),
    Qt.Key.Key_Equal: (0.0, 0.7),
    Qt.Key.Key_Minus: (0.0, 1 / 0.7),
}
"""Each key's effect on the x axis: shift as a fraction of its length, and factor of its length."""


LEAST_DRAG = 4
"""Pixels; a shorter drag is a shaky click."""


class RunViewBox(pg.ViewBox):  # type: ignore[misc]
    """A drag selects a part of the run; with Shift or the middle button it pans; the wheel zooms about the
    pointer. The value axis cannot be moved: it fits the visible part."""

    all_asked = Signal()
    """Emitted on a double click."""

    def __init__(self) -> None:
        # pyqtgraph's menu alone would take a third of the time.
        super().__init__(enableMenu=False)
        self.setMouseEnabled(x=True, y=False)

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        if ev.button() == Qt.MouseButton.RightButton:
            ev.ignore()
            return
        moves = (
            ev.button() == Qt.MouseButton.MiddleButton or ev.modifiers() & Qt.KeyboardModifier.ShiftModifier
        )
        if ev.isStart():
            self.state["mouseMode"] = self.PanMode if moves else self.RectMode
        super().mouseDragEvent(ev, axis)

    def mouseClickEvent(self, ev: Any) -> None:
        if ev.button() == Qt.MouseButton.LeftButton and ev.double():
            ev.accept()
            self.all_asked.emit()

    def updateScaleBox(self, p1: Any, p2: Any) -> None:
        top, bottom = self.rect().top(), self.rect().bottom()
        super().updateScaleBox(pg.Point(p1.x(), top), pg.Point(p2.x(), bottom))

    def showAxRect(self, ax: QRectF, **_: Any) -> None:
        (left, right), seen = self.viewRange()[0], ax.normalized()
        if seen.width() * self.width() > LEAST_DRAG * (right - left):
            self.setXRange(seen.left(), seen.right(), padding=0)
            self.sigRangeChangedManually.emit(self.state["mouseEnabled"])


class Canvas(pg.PlotWidget):  # type: ignore[misc]
    """``moved``: the user panned or zoomed. ``pointed``: the pointer's place on the x axis, or None.
    ``seen``: painted while ``behind``, so a redraw is due."""

    moved = Signal()
    pointed = Signal(object)
    seen = Signal()

    def __init__(self) -> None:
        super().__init__(
            background=None,
            axisItems={"left": ValueAxis(), "bottom": RunAxis()},
            viewBox=RunViewBox(),
        )
        self.paint_s = 0.0
        self.behind = True
        self._resized = QTimer(self, singleShot=True)
        self._resized.timeout.connect(lambda: super(Canvas, self).resizeEvent(None))
        self.hideButtons()
        for side in ("right", "top"):  # never shown, but they would follow every change of range
            self.getPlotItem().getAxis(side).unlinkFromView()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.getPlotItem().vb.sigRangeChangedManually.connect(lambda *_: self.moved.emit())

    @property
    def area(self) -> QRectF:
        """The curves' area, in pixels of this widget."""
        return QRectF(self.getPlotItem().vb.sceneBoundingRect())

    def pixel(self, x: float, y: float) -> QPointF:
        """A point's pixel; ``y`` as drawn, a power of ten on a logarithmic scale."""
        area, ((left, right), (low, high)) = self.area, self.viewRange()
        return QPointF(
            area.left() + (x - left) / ((right - left) or 1.0) * area.width(),
            area.bottom() - (y - low) / ((high - low) or 1.0) * area.height(),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        began_s = time.thread_time()
        super().paintEvent(event)
        self.paint_s += time.thread_time() - began_s
        if self.behind:
            self.seen.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Without Ctrl the wheel scrolls the page."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event)
        else:
            event.ignore()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """Applied once for all sizes of one turn: a card that fills line by line has many, and pyqtgraph
        rebuilds its axes with each."""
        if event is None:  # pyqtgraph calls this while it is constructed
            super().resizeEvent(None)
        else:
            self._resized.start(0)

    def settle(self) -> None:
        """Apply the pending size immediately instead of in the next turn."""
        if self._resized.isActive():
            self._resized.stop()
            super().resizeEvent(None)

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
