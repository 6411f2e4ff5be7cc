"""A plot's axes: few labels at round numbers, as many as fit. Imports pyqtgraph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from core.report.points import Axis
from core.vocabulary import units

_LABELLED = (1, 2, 5)
_TIMES_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
LEAST_CHARACTERS = 6
"""Minimum room for a label of the run's axis; with less, the labels would read as one row of digits."""
APART_CHARACTERS = 3
MOST_LABELS = 8
LINES_APART = 2.0
"""Lines of text between two numbers of the value axis, at least."""
_MOST = 100
"""Numbers of an axis, however its range came about."""
_ROOM = 5.0
"""Pixels between an axis's line and its numbers."""
_BEYOND = 40.0
"""Pixels by which a number may stand out over its axis's end."""


class LeanAxis(pg.AxisItem):  # type: ignore[misc]
    """Arranges and paints only a line and numbers: pyqtgraph's own axes take a third of a frame's time. The
    grid marks the places of the numbers."""

    picture: list[tuple[QPointF, str]] | None
    """The numbers and where each begins. pyqtgraph removes them when they are no longer true."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self._upright = side == "left"
        self._made_for: object = None
        self._levels: list[tuple[float, list[float]]] = []

    def boundingRect(self) -> QRectF:
        return QRectF(self.rect()).adjusted(-_BEYOND, -_BEYOND, _BEYOND, _BEYOND)

    def tickValues(self, low: float, high: float, pixels: float) -> list[tuple[float, list[float]]]:
        """The spacing and numbers of each level. The grid and the axis ask for the same ones."""
        key = (low, high, pixels, self._kind)
        if key != self._made_for:
            self._made_for, self._levels = key, self._made(low, high, pixels)
        return self._levels

    @property
    def _kind(self) -> object:
        """What else the numbers depend on."""
        return self.logMode

    def _made(self, low: float, high: float, pixels: float) -> list[tuple[float, list[float]]]:
        (spacing, _), *_ = self.tickSpacing(low, high, pixels)
        first, last = math.ceil(low / spacing), math.floor(high / spacing)
        return [(spacing, [number * spacing for number in range(first, min(last, first + _MOST) + 1)])]

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        painter.setFont(QGuiApplication.font())
        if self.picture is None:
            self.picture = self._arranged(painter.fontMetrics())
        area = self.rect()
        painter.setPen(self.pen())
        edge = (area.topRight(), area.bottomRight()) if self._upright else (area.topLeft(), area.topRight())
        painter.drawLine(*edge)
        painter.setPen(self.textPen())
        for place, words in self.picture:
            painter.drawText(place, words)

    def _arranged(self, metrics: QFontMetrics) -> list[tuple[QPointF, str]]:
        """A number that would overlap another is left out."""
        area, (low, high) = self.rect(), self.range
        length = area.height() if self._upright else area.width()
        if not self.style["showValues"] or length <= 0 or not high > low:
            return []
        found: list[tuple[QPointF, str]] = []
        taken: list[float] = []
        for spacing, values in self.tickValues(low, high, length):
            for value, words in zip(values, self.tickStrings(values, 1.0, spacing), strict=True):
                part, wide = (value - low) / (high - low), metrics.horizontalAdvance(words)
                if not 0 <= part <= 1 or not words:
                    continue
                if not self._upright:
                    found.append((QPointF(part * length - wide / 2, metrics.ascent() + _ROOM), words))
                    continue
                middle = (1 - part) * length
                if all(abs(middle - other) >= metrics.height() for other in taken):
                    taken.append(middle)
                    base = middle + (metrics.ascent() - metrics.descent()) / 2
                    found.append((QPointF(area.right() - _ROOM - wide, base), words))
        return found


class ValueAxis(LeanAxis):
    """On a logarithmic scale, labels 1, 2 and 5 of a decade: nine numbers would overlap.

    ``fixed``: the axis's numbers, if they never change.
    """

    fixed: tuple[float, ...] = ()

    def __init__(self) -> None:
        super().__init__("left")
        self._line = QFontMetrics(QGuiApplication.font()).height()

    def tickSpacing(self, low: float, high: float, pixels: float) -> list[tuple[float, float]]:
        """One level, at round numbers; on a logarithmic scale, pyqtgraph's."""
        if self.logMode:
            levels: list[tuple[float, float]] = super().tickSpacing(low, high, pixels)
            return levels
        return [(_round_number((high - low) * LINES_APART * self._line / max(pixels, 1.0)), 0.0)]

    def _made(self, low: float, high: float, pixels: float) -> list[tuple[float, list[float]]]:
        if self.fixed:
            return [(self.fixed[1] - self.fixed[0], list(self.fixed))]
        if self.logMode:
            levels: list[tuple[float, list[float]]] = pg.AxisItem.tickValues(self, low, high, pixels)
            return levels
        return super()._made(low, high, pixels)

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float | None) -> list[str]:
        words: list[str] = super().logTickStrings(values, scale, spacing)
        some = [
            text if round(10 ** (value % 1)) in (*_LABELLED, 10) else ""
            for text, value in zip(words, values, strict=True)
        ]
        return some if sum(map(bool, some)) > 1 else words


class RunAxis(LeanAxis):
    """A run's progress: in whole steps, in epochs or in time. Never below zero."""

    def __init__(self) -> None:
        super().__init__("bottom")
        self.axis: Axis = "step"
        self._character = QFontMetrics(QGuiApplication.font()).averageCharWidth()
        self.room = self._character * LEAST_CHARACTERS
        """Minimum pixels between two labels."""

    def tickSpacing(self, left: float, right: float, pixels: float) -> list[tuple[float, float]]:
        """One level, at round numbers: pyqtgraph has three by default and labels two of them."""
        pixels = max(pixels, 1.0)
        room = self._character * (len(self._word(right, 1.0)) + APART_CHARACTERS)
        least = (right - left) * max(self.room, room, pixels / MOST_LABELS) / pixels
        if not (math.isfinite(least) and least > 0):
            return [(1.0, 0.0)]
        if self.axis == "time" and 1 < least <= _TIMES_S[-1]:
            return [(float(next(time for time in _TIMES_S if time >= least)), 0.0)]
        spacing = _round_number(least)
        return [(max(1.0, spacing) if self.axis == "step" else spacing, 0.0)]

    @property
    def _kind(self) -> object:
        return self.axis

    def _made(self, left: float, right: float, pixels: float) -> list[tuple[float, list[float]]]:
        return super()._made(max(0.0, left), right, pixels)

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [self._word(value, spacing) for value in values]

    def _word(self, value: float, spacing: float) -> str:
        if self.axis == "time":
            return units.clock(value) if spacing >= 1 and value < 1e9 else f"{value:g}"
        for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= 10 * unit:
                return f"{value / unit:.4g}{letter}"
        return f"{value:,.0f}" if spacing >= 1 else f"{value:.4g}"


def _round_number(least: float) -> float:
    """The smallest 1, 2 or 5 of a decade that is not less than ``least``."""
    if not (math.isfinite(least) and least > 0):
        return 1.0
    decade = 10.0 ** math.floor(math.log10(least))
    return next(decade * number for number in (*_LABELLED, 10, 20) if decade * number >= least)
