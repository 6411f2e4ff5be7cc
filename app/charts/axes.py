"""The axes of a plot. Imports pyqtgraph, so it is imported with the first plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtGui import QFontMetrics, QGuiApplication

_LABELLED = (1, 2, 5)
LABEL_CHARACTERS = 14
"""A label of the run's axis stands in so much room: more of them would be a row of digits."""


class ValueAxis(pg.AxisItem):  # type: ignore[misc]
    """On a logarithmic scale it labels 1, 2 and 5 of a decade: nine numbers would lie over each other."""

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float | None) -> list[str]:
        words: list[str] = super().logTickStrings(values, scale, spacing)
        some = [
            text if round(10 ** (value % 1)) in (*_LABELLED, 10) else ""
            for text, value in zip(words, values, strict=True)
        ]
        return some if sum(map(bool, some)) > 1 else words


class RunAxis(pg.AxisItem):  # type: ignore[misc]
    """How far a run was: in steps, which are ``whole``, or in seconds. Neither is ever less than zero."""

    def __init__(self) -> None:
        super().__init__("bottom")
        self.whole = True
        self.room = QFontMetrics(QGuiApplication.font()).averageCharWidth() * LABEL_CHARACTERS
        """Pixels from one label to the next, at least."""

    def tickSpacing(self, left: float, right: float, pixels: float) -> list[tuple[float, float]]:
        """One level, by 1, 2 or 5 of a decade: pyqtgraph's own has three, and labels two of them."""
        least = (right - left) * self.room / max(pixels, 1.0)
        if not (math.isfinite(least) and least > 0):
            return [(1.0, 0.0)]
        decade = 10 ** math.floor(math.log10(least))
        spacing = next(decade * number for number in (*_LABELLED, 10) if decade * number >= least)
        return [(max(1.0, spacing) if self.whole else spacing, 0.0)]

    def tickValues(self, left: float, right: float, pixels: float) -> list[tuple[float, list[float]]]:
        levels = super().tickValues(left, right, pixels)
        return [(spacing, [value for value in values if value >= 0]) for spacing, values in levels]
