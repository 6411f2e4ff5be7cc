"""The grid behind the curves. pyqtgraph's own takes three times as long to paint as the curves."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

MOST_LINES = 12
"""Maximum lines across the value axis: more would look like hatching."""


class Grid(pg.GraphicsObject):  # type: ignore[misc]
    """Lines at the numbers of ``plot``'s axes."""

    def __init__(self, plot: pg.PlotItem) -> None:
        super().__init__()
        self._plot = plot
        self._colour = QColor()
        self._made_for: object = None
        self._lines: list[QLineF] = []
        plot.vb.sigRangeChanged.connect(lambda *_: self.prepareGeometryChange())
        plot.vb.sigResized.connect(lambda *_: self.prepareGeometryChange())

    def paint_in(self, colour: QColor) -> None:
        self._colour = colour
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(self._plot.vb.viewRect())

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        painter.setPen(pg.mkPen(self._colour, width=1))
        painter.drawLines(self._made())

    def _made(self) -> list[QLineF]:
        view = self._plot.vb
        (left, right), (low, high) = view.viewRange()
        key = (left, right, low, high, view.width(), view.height())
        if key != self._made_for:
            self._made_for = key
            across = _places(self._plot.getAxis("bottom"), left, right, view.width())
            up = _places(self._plot.getAxis("left"), low, high, view.height())
            self._lines = [QLineF(x, low, x, high) for x in across] + [QLineF(left, y, right, y) for y in up]
        return self._lines


def _places(axis: pg.AxisItem, low: float, high: float, pixels: float) -> list[float]:
    """As many tick levels as fit without crowding."""
    places: list[float] = []
    for _, values in axis.tickValues(low, high, pixels):
        if places and len(places) + len(values) > MOST_LINES:
            break
        places += map(float, values)
    return places
