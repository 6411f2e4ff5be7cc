"""Plots as a picture for a report: exactly what is seen of them, drawn as the report's own plot is.

Light whatever the screen's theme is, with title, legend, grid, margins. ``scene`` reads the plots on the GUI
thread; ``paint`` may run beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QPolygonF

from app import theme
from app.charts.curve import logarithms
from app.charts.readout import brief
from app.charts.series import Floats
from app.run_words import duration
from core.report.svg import HEIGHT, WIDTH, label, log_ticks, ticks
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from app.charts.plot import Plot

_LEFT, _RIGHT, _TOP, _BOTTOM = 120, 110, 70, 70
_HEAD = 70
_INK, _GREY, _GRID = QColor("#20242c"), QColor("#6e7480"), QColor("#e4e7ec")
_TITLE, _PANEL, _LEGEND, _NUMBERS = 30, 26, 20, 18
"""Sizes of letters, in pixels of the picture."""
_TURNS = ("warning", "good", "bad")
_COLUMNS = WIDTH - _LEFT - _RIGHT


class Line(NamedTuple):
    """Shapes (n,): ``x`` and ``y`` as drawn; ``high`` where each entry stands for many points."""

    name: str
    colour: str
    dashed: bool
    faint: bool
    x: Floats
    y: Floats
    high: Floats | None
    end: str


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    time: bool
    log: bool
    x: tuple[float, float]
    y: tuple[float, float]
    lines: tuple[Line, ...]
    turns: tuple[tuple[float, str, str], ...] = ()
    """Where a laptop went or came, in words (none where a panel above says them), and in which colour."""


class Scene(NamedTuple):
    title: str
    panels: tuple[Panel, ...]

    @property
    def size(self) -> QSize:
        """In pixels at scale 1."""
        return QSize(WIDTH, _HEAD + HEIGHT * len(self.panels))


def scene(title: str, plots: Sequence[Plot]) -> Scene:
    """What ``plots`` show at this moment: their part of the run, look and curves."""
    return Scene(plain(title, 120), tuple(_panel(plot) for plot in plots))


def paint(what: Scene, painter: QPainter) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, what.size.width(), what.size.height()), QColor("#ffffff"))
    _words(painter, what.title, QRectF(_LEFT, 0, WIDTH - _LEFT - 40, _HEAD), _TITLE, _INK, bold=True)
    for number, panel in enumerate(what.panels):
        painter.save()
        painter.translate(0, _HEAD + number * HEIGHT)
        _Painting(painter, panel).draw()
        painter.restore()


def _panel(plot: Plot) -> Panel:
    look, shown = plot.look, theme.colours().curves
    low, high = plot.canvas.viewRange()[1]
    lines: list[Line] = []
    for curve in plot.curves:
        colour = theme.LIGHT.curves[shown.index(curve.colour)] if curve.colour in shown else curve.colour
        last = curve.last
        end = brief(last[1]) if last is not None else ""
        for series, faint in ((curve.raw, curve.smooth is not None), (curve.smooth, False)):
            if series is None:
                continue
            drawn = series.drawn(*plot.range, _COLUMNS)
            y, top = drawn.low.copy(), drawn.high.copy() if drawn.dense else None
            if look.log:
                y, top = logarithms(y), None if top is None else logarithms(top)
            name = f"{curve.name} (smoothed)" if series is curve.smooth else curve.name
            dashed = curve.dashed and not faint
            lines.append(Line(name, colour, dashed, faint, drawn.x.copy(), y, top, "" if faint else end))
    palette = {
        shade: getattr(theme.LIGHT, name)
        for name, shade in theme.colours()._asdict().items()
        if name in _TURNS
    }
    turns = tuple(
        (turn.x, turn.words if plot.marks.says_turns else "", palette.get(turn.colour, turn.colour))
        for turn in plot.marks.turns
    )
    return Panel(plot.shown, look.axis == "time", look.log, plot.range, (low, high), tuple(lines), turns)


class _Painting:
    def __init__(self, painter: QPainter, panel: Panel) -> None:
        self._painter, self._panel = painter, panel
        self._box = QRectF(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM)

    def draw(self) -> None:
        self._grid()
        _words(self._painter, self._panel.title, QRectF(_LEFT, 10, 500, 50), _PANEL, _INK, bold=True)
        self._legend()
        self._painter.setClipRect(self._box.adjusted(-3, -3, 3, 3))
        for line in sorted(self._panel.lines, key=lambda line: not line.faint):
            self._line(line)
        self._painter.setClipping(False)
        self._turns()
        for line in self._panel.lines:
            self._end(line)

    def _grid(self) -> None:
        panel, box = self._panel, self._box
        for value in (log_ticks if panel.log else ticks)(*panel.y):
            y = self._at(0.0, np.log10(value) if panel.log else value).y()
            self._stroke(_GRID, QPointF(box.left(), y), QPointF(box.right(), y))
            area = QRectF(0, y - 15, box.left() - 12, 30)
            _words(self._painter, label(value), area, _NUMBERS, _GREY, Qt.AlignmentFlag.AlignRight)
        for value in ticks(max(0.0, panel.x[0]), panel.x[1], 8):
            x = self._at(value, 0.0).x()
            self._stroke(_GRID, QPointF(x, box.top()), QPointF(x, box.bottom()))
            words = duration(value) if panel.time else label(value)
            area = QRectF(x - 60, box.bottom() + 6, 120, 30)
            _words(self._painter, words, area, _NUMBERS, _GREY, Qt.AlignmentFlag.AlignHCenter)
        self._stroke(_GREY, box.bottomLeft(), box.bottomRight())
        area = QRectF(box.right() - 120, box.bottom() + 34, 120, 30)
        words = "time" if panel.time else "step"
        _words(self._painter, words, area, _NUMBERS, _GREY, Qt.AlignmentFlag.AlignRight)

    def _turns(self) -> None:
        seen = [turn for turn in sorted(self._panel.turns) if self._panel.x[0] <= turn[0] <= self._panel.x[1]]
        for number, (at, words, colour) in enumerate(seen):
            x, top = self._at(at, 0.0).x(), self._box.top()
            self._painter.setPen(QPen(QColor(colour), 2, Qt.PenStyle.DotLine))
            self._painter.drawLine(QPointF(x, top), QPointF(x, self._box.bottom()))
            near_end = x > self._box.right() - 200
            area = QRectF(x - 206 if near_end else x + 6, top + 22 * (number % 3), 200, 22)
            align = Qt.AlignmentFlag.AlignRight if near_end else Qt.AlignmentFlag.AlignLeft
            _words(self._painter, words, area, _NUMBERS, QColor(colour), align)

    def _legend(self) -> None:
        """From the right, as each name is as long as it is."""
        self._painter.setFont(_font(_LEGEND))
        right = WIDTH - 40.0
        for line in reversed(self._panel.lines):
            name = plain(line.name, 40)
            right -= self._painter.fontMetrics().horizontalAdvance(name)
            self._painter.setPen(_INK)
            self._painter.drawText(QPointF(right, 42), name)
            self._painter.setPen(_pen(line))
            self._painter.drawLine(QPointF(right - 38, 36), QPointF(right - 10, 36))
            right -= 38 + 24

    def _line(self, line: Line) -> None:
        if line.high is not None:
            self._painter.setPen(Qt.PenStyle.NoPen)
            self._painter.setBrush(QColor(line.colour) if not line.faint else _pen(line).color())
            around = [*zip(line.x, line.y, strict=True), *zip(line.x[::-1], line.high[::-1], strict=True)]
            self._painter.drawPolygon(QPolygonF([self._at(x, y) for x, y in around if np.isfinite(y)]))
            return
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.setPen(_pen(line))
        piece = QPolygonF()
        for x, y in zip((*line.x, np.nan), (*line.y, np.nan), strict=True):
            if np.isfinite(y):
                piece.append(self._at(x, y))
            elif piece.size():
                self._painter.drawPolyline(piece)
                if piece.size() == 1:
                    self._painter.drawEllipse(piece.first(), 2, 2)
                piece = QPolygonF()

    def _end(self, line: Line) -> None:
        there = np.flatnonzero(np.isfinite(line.y))
        if not line.end or not len(there):
            return
        place = self._at(line.x[there[-1]], line.y[there[-1]])
        if self._box.adjusted(-1, -1, 1, 1).contains(place):
            area = QRectF(self._box.right() + 8, place.y() - 15, _RIGHT - 8, 30)
            _words(self._painter, line.end, area, _NUMBERS, QColor(line.colour))

    def _at(self, x: float, y: float) -> QPointF:
        (left, right), (low, high) = self._panel.x, self._panel.y
        return QPointF(
            self._box.left() + (x - left) / ((right - left) or 1.0) * self._box.width(),
            self._box.bottom() - (y - low) / ((high - low) or 1.0) * self._box.height(),
        )

    def _stroke(self, colour: QColor, start: QPointF, end: QPointF) -> None:
        self._painter.setPen(QPen(colour, 1))
        self._painter.drawLine(start, end)


def _pen(line: Line) -> QPen:
    colour = QColor(line.colour)
    if line.faint:
        colour.setAlphaF(0.25)
    style = Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine
    return QPen(colour, 2 if line.faint else 3, style, Qt.PenCapStyle.FlatCap, Qt.PenJoinStyle.RoundJoin)


def _font(size: int, *, bold: bool = False) -> QFont:
    font = QFont("sans-serif")
    font.setPixelSize(size)
    font.setBold(bold)
    return font


def _words(
    painter: QPainter,
    words: str,
    area: QRectF,
    size: int,
    colour: QColor,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    *,
    bold: bool = False,
) -> None:
    painter.setFont(_font(size, bold=bold))
    painter.setPen(colour)
    shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(area.width()))
    painter.drawText(area, int(align | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), shown)
