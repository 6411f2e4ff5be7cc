"""The axes of a plot: few labels at round numbers, as many as there is room for. Imports pyqtgraph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtGui import QFontMetrics, QGuiApplication

from app.run_words import duration

_LABELLED = (1, 2, 5)
_TIMES_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
LEAST_CHARACTERS = 6
"""A label of the run's axis stands in so much room at least: more of them would be a row of digits."""
APART_CHARACTERS = 3
MOST_LABELS = 8


class ValueAxis(pg.AxisItem):  # type: ignore[misc]
    """On a logarithmic scale it labels 1, 2 and 5 of a decade: nine numbers would lie over each other.

    ``fixed``: its numbers, where they are always the same.
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
    """How far a run was: in steps, which are ``whole``, or in time. Neither is ever less than zero."""

    def __init__(self) -> None:
        super().__init__("bottom")
        self.whole = True
        self._character = QFontMetrics(QGuiApplication.font()).averageCharWidth()
        self.room = self._character * LEAST_CHARACTERS
        """Pixels from one label to the next, at least."""

    def tickSpacing(self, left: float, right: float, pixels: float) -> list[tuple[float, float]]:
        """One level, at round numbers: pyqtgraph's own has three, and labels two of them."""
        pixels = max(pixels, 1.0)
        room = self._character * (len(self._word(right, 1.0)) + APART_CHARACTERS)
        least = (right - left) * max(self.room, room, pixels / MOST_LABELS) / pixels
        if not (math.isfinite(least) and least > 0):
            return [(1.0, 0.0)]
        if not self.whole and 1 < least <= _TIMES_S[-1]:
            return [(float(next(time for time in _TIMES_S if time >= least)), 0.0)]
        decade = 10 ** math.floor(math.log10(least))
        spacing = next(decade * number for number in (*_LABELLED, 10) if decade * number >= least)
        return [(max(1.0, spacing) if self.whole else spacing, 0.0)]

    def tickValues(self, left: float, right: float, pixels: float) -> list[tuple[float, list[float]]]:
        levels = super().tickValues(left, right, pixels)
        return [(spacing, [value for value in values if value >= 0]) for spacing, values in levels]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [self._word(value, spacing) for value in values]

    def _word(self, value: float, spacing: float) -> str:
        if not self.whole:
            return duration(value) if spacing >= 1 and value < 1e9 else f"{value:g}"
        for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= 10 * unit:
                return f"{value / unit:.4g}{letter}"
        return f"{value:,.0f}"
