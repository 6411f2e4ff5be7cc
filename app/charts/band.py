"""The filled extent of very many points. Imports pyqtgraph, so it is imported when first shown."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPolygonF
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from app.charts.series import Floats


class Band(pg.GraphicsObject):  # type: ignore[misc]
    """One filled outline: hundreds of vertical lines side by side take three times as long to draw."""

    def __init__(self) -> None:
        super().__init__()
        self._polygon = pg.functions.create_qpolygonf(0)
        self._bounds = QRectF()
        self._colour = QColor()

    def paint_in(self, colour: QColor) -> None:
        self._colour = colour
        self.update()

    def show_extent(self, x: Floats, low: Floats, high: Floats) -> None:
        """Arrays of shape (n,) each; nothing for n = 0. The outline skips missing numbers."""
        if np.isnan(low.sum()):
            there = ~np.isnan(low)
            x, low, high = x[there], low[there], high[there]
        if not len(x) and self._bounds.isNull():
            return
        self.prepareGeometryChange()
        around, back = np.concatenate((x, x[::-1])), np.concatenate((high, low[::-1]))
        # pyqtgraph cannot write into an empty polygon.
        self._polygon = pg.functions.arrayToQPolygonF(around, back) if len(x) else QPolygonF()
        self._bounds = self._polygon.boundingRect() if len(x) else QRectF()
        self.update()

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        if self._bounds.isNull():
            return
        # Draw the outline too: a peak narrower than a pixel, or a flat stretch, has no area to fill.
        painter.setPen(pg.mkPen(self._colour, width=1))
        painter.setBrush(self._colour)
        painter.drawPolygon(self._polygon)
