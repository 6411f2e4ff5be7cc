"""A plot's axes: few labels at round numbers, as many as fit. Imports pyqtgraph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtGui import QFontMetrics, QGuiApplication

from core.report.points import Axis
from core.vocabulary import units

_LABELLED = (1, 2, 5)
_TIMES_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
LEAST_CHARACTERS = 6
"""Minimum room for a label of the run's axis; with less, the labels would read as one row of digits."""
APART_CHARACTERS = 3
MOST_LABELS = 8


class ValueAxis(pg.AxisItem):  # type: ignore[misc]
    """On a logarithmic scale, labels 1, 2 and 5 of a decade: nine numbers would overlap.

    ``fixed``: the axis's numbers, if they never change.
    """

    fixed: tuple[float, ...] = ()

    def tickValues(self, low: float, high: float, pixels: float) -> list[tuple[float, list[float]]]:
        if self.fixed:
            return [(self.fixed[1] - self.fixed[0], list(self.fixed))]
        levels: list[tuple[float, list[float]]] = super().tickValues(low, high, pixels)
        return levels

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float | None) -> list[str]:
        words: list[str] = super().logTickStrings(values, scale, spacing)
        some = [
            text if round(10 ** (value % 1)) in (*_LABELLED, 10) else ""
            for text, value in zip(words, values, strict=True)
        ]
        return some if sum(map(bool, some)) > 1 else words


class RunAxis(pg.AxisItem):  # type: ignore[misc]
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
        decade = 10 ** math.floor(math.log10(least))
        spacing = next(decade * number for number in (*_LABELLED, 10) if decade * number >= least)
        return [(max(1.0, spacing) if self.axis == "step" else spacing, 0.0)]

    def tickValues(self, left: float, right: float, pixels: float) -> list[tuple[float, list[float]]]:
        levels = super().tickValues(left, right, pixels)
        return [(spacing, [value for value in values if value >= 0]) for spacing, values in levels]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [self._word(value, spacing) for value in values]

    def _word(self, value: float, spacing: float) -> str:
        if self.axis == "time":
            return units.clock(value) if spacing >= 1 and value < 1e9 else f"{value:g}"
        for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= 10 * unit:
                return f"{value / unit:.4g}{letter}"
        return f"{value:,.0f}" if spacing >= 1 else f"{value:.4g}"
