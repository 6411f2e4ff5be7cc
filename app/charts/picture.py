"""Plots as a picture: what the screen shows, with titles and names, at any scale. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRectF, QSize
from PySide6.QtGui import QColor, QPainter

from app import theme
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from app.charts.grid_of_plots import GridOfPlots, Slot
    from app.charts.legend import Legend
    from app.charts.plot import Plot

MARGIN = 2 * theme.GAP


class Picture:
    """As large as its content, even if scrolled out of sight. Call ``paint_head`` first, then ``paint``
    for each slot; each slot must already be drawn."""

    def __init__(self, title: str, legend: Legend, grid: GridOfPlots) -> None:
        self.title = plain(title, 120)
        self._legend, self._grid = legend, grid
        self._line = grid.fontMetrics().height()
        self._top = MARGIN + 2 * self._line + self._legend_height + theme.GAP

    @property
    def _legend_height(self) -> int:
        return 0 if self._legend.isHidden() else self._legend.height()

    @property
    def size(self) -> QSize:
        """In pixels at scale 1."""
        return QSize(self._grid.width() + 2 * MARGIN, self._top + self._grid.height() + MARGIN)

    @property
    def slots(self) -> Sequence[Slot]:
        return [slot for slot in self._grid.slots if not slot.isHidden()]

    def paint_head(self, painter: QPainter) -> None:
        painter.fillRect(QRectF(0, 0, self.size.width(), self.size.height()), QColor(theme.colours().panel))
        font = self._grid.font()
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(theme.colours().text))
        painter.drawText(QPoint(MARGIN, MARGIN + painter.fontMetrics().ascent()), self.title)
        if self._legend_height:
            painter.save()
            painter.translate(MARGIN, MARGIN + 2 * self._line)
            self._legend.paint(painter)
            painter.restore()

    def paint(self, painter: QPainter, slot: Slot, scale: float) -> None:
        """``scale``: the picture's scale; lines keep their thickness from the screen."""
        if slot.plot is not None:
            painter.save()
            painter.translate(MARGIN + slot.x(), self._top + slot.y())
            _paint_plot(slot.plot, painter, scale)
            painter.restore()


def _paint_plot(plot: Plot, painter: QPainter, scale: float) -> None:
    """Title, names and curves, at (0, 0)."""
    font = plot.font()
    font.setBold(True)
    painter.save()
    painter.setFont(font)
    painter.setPen(QColor(theme.colours().text))
    painter.drawText(QPoint(0, painter.fontMetrics().ascent()), plot.shown)
    painter.restore()
    if not plot.legend.isHidden():
        painter.save()
        painter.translate(plot.legend.pos())
        plot.legend.paint(painter)
        painter.restore()
    plot.canvas.settle()
    plot.colour(scale)
    painter.save()
    painter.translate(plot.canvas.pos())
    plot.canvas.render(painter, QRectF(plot.canvas.rect()), plot.canvas.rect())
    plot.marks.paint(painter)
    painter.restore()
    plot.colour()
