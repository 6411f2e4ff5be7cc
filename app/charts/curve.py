"""One curve on a plot: its points as they came and smoothed, each with its pyramid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from app.charts.points import Points
from app.charts.series import Floats, Series
from app.charts.smoothing import Smoother

Axis = Literal["step", "time"]
BITE = 200_000
"""Points made ready in one go: some milliseconds, so that a long history never holds up the window."""


@dataclass(frozen=True, slots=True)
class Look:
    """How all curves of a panel are drawn. ``smoothing``: weight, 0 to below 1."""

    axis: Axis = "step"
    smoothing: float = 0.0
    log: bool = False


@dataclass(slots=True)
class Curve:
    """``points`` may go on growing; ``catch_up`` takes in what is new. Validation is never smoothed: it has
    one point an epoch."""

    points: Points
    name: str
    colour: str
    dashed: bool = False
    raw: Series = field(default_factory=Series)
    smooth: Series | None = None
    _weight: float = 0.0
    _smoother: Smoother | None = None
    _unit: float = 0.0
    _measured: int = 0
    """Points there were when the unit was measured."""

    def begin(self, look: Look) -> None:
        """Forget what was made ready: the look has changed."""
        self.raw = Series()
        self._weight = 0.0 if self.dashed else look.smoothing
        self.smooth = Series() if self._weight > 0 else None
        self._unit, self._measured = 0.0, 0

    def catch_up(self, axis: Axis) -> bool:
        """True once every point is taken in; call again otherwise."""
        all_x = self.points.steps if axis == "step" else self.points.seconds
        first, last = len(self.raw), min(len(self.points), len(self.raw) + BITE)
        if last > first:
            self.raw.extend(_copied(all_x, first, last), _copied(self.points.values, first, last))
        smoothed = self.smooth is None or self._smooth_on()
        return smoothed and last == len(self.points)

    def _smooth_on(self) -> bool:
        self._measure()
        assert self.smooth is not None and self._smoother is not None
        first, last = len(self.smooth), min(len(self.raw), len(self.smooth) + BITE)
        if last > first:
            x, values = self.raw.x[first:last], _copied(self.points.values, first, last)
            self.smooth.extend(x, self._smoother.next(x, values))
        return last == len(self.raw)

    def _measure(self) -> None:
        """The distance that one step of smoothing counts as: the mean one. Looked at whenever the points have
        doubled, and all is smoothed anew where it has become another."""
        if self._smoother is not None and self._measured and len(self.raw) < 2 * self._measured:
            return
        self._measured = max(1, len(self.raw))
        span = self.span
        unit = (span[1] - span[0]) / max(1, len(self.raw) - 1) if span is not None else 0.0
        unit = unit if unit > 0 else 1.0
        if self._smoother is None or not self._unit or not 0.8 < unit / self._unit < 1.25:
            self._unit = unit
            self._smoother, self.smooth = Smoother(self._weight, unit), Series()

    @property
    def span(self) -> tuple[float, float] | None:
        x = self.raw.x
        return (float(x[0]), float(x[-1])) if len(x) else None

    def at(self, x: float) -> int | None:
        """Index of the point nearest to ``x``; None where there is none."""
        there = self.raw.x
        if not len(there):
            return None
        after = min(int(np.searchsorted(there, x)), len(there) - 1)
        return after - 1 if after and x - there[after - 1] <= there[after] - x else after

    @property
    def last(self) -> tuple[float, float] | None:
        """Where its line ends: the newest point that is a number, smoothed where the line is."""
        series = self.smooth if self.smooth is not None else self.raw
        for index in range(len(series) - 1, max(-1, len(series) - 100), -1):
            if np.isfinite(series.y[index]):
                return float(series.x[index]), float(series.y[index])
        return None


def _copied(values: object, first: int, last: int) -> Floats:
    # Copied: an array that lends its memory could not grow any more.
    return np.array(memoryview(values)[first:last], np.float64)  # type: ignore[arg-type]


def logarithms(y: Floats) -> Floats:
    """Powers of ten; what has none leaves a gap, as a number that is none does."""
    positive = y > 0
    return np.where(positive, np.log10(np.where(positive, y, 1.0)), np.nan)
