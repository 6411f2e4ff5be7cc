"""One curve on a plot: its raw and smoothed points, each with its pyramid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.charts.series import Floats, Series
from app.charts.smoothing import Smoother
from core.report.points import Axis, Points

BITE = 200_000
"""Points prepared at a time: some milliseconds, so that a long history never blocks the window."""


@dataclass(frozen=True, slots=True)
class Look:
    """How all curves of a panel are drawn. ``smoothing``: weight, 0 to below 1. ``trimmed``: the value axis
    leaves out outliers."""

    axis: Axis = "step"
    smoothing: float = 0.0
    log: bool = False
    trimmed: bool = False


@dataclass(slots=True)
class PlotCurve:
    """``points`` may keep growing; ``catch_up`` takes in what is new. Curves with one point per epoch,
    such as validation, are never smoothed. ``base``: points to subtract; points beyond its end are
    omitted."""

    points: Points
    name: str
    colour: str
    dashed: bool = False
    base: Points | None = None
    hidden: bool = False
    strong: bool = False
    raw: Series = field(default_factory=Series)
    smooth: Series | None = None
    _weight: float = 0.0
    _smoother: Smoother | None = None
    _unit: float = 0.0
    _measured: int = 0
    """Number of points when the unit was measured."""

    def begin(self, look: Look) -> None:
        """Discard the prepared points: the look has changed."""
        self.raw = Series()
        self._weight = 0.0 if self.dashed or self.by_epoch else look.smoothing
        self.smooth = Series() if self._weight > 0 else None
        self._unit, self._measured = 0.0, 0

    def catch_up(self, axis: Axis) -> bool:
        """True once every point is taken in; otherwise call again."""
        first, last = len(self.raw), min(len(self.points), len(self.raw) + BITE)
        if last > first:
            x = _copied(self.points.along(axis), first, last)
            self.raw.extend(x, less(self.base, axis, x, _copied(self.points.values, first, last)))
        smoothed = self.smooth is None or self._smooth_on()
        return smoothed and last == len(self.points)

    @property
    def by_epoch(self) -> bool:
        """Whether it has one point per epoch."""
        return 0 < len(self.points) == len(self.points.epochs)

    def _smooth_on(self) -> bool:
        self._measure()
        assert self.smooth is not None and self._smoother is not None
        first, last = len(self.smooth), min(len(self.raw), len(self.smooth) + BITE)
        if last > first:
            x = self.raw.x[first:last]
            self.smooth.extend(x, self._smoother.next(x, self.raw.y[first:last]))
        return last == len(self.raw)

    def _measure(self) -> None:
        """Sets the distance that counts as one smoothing step: the mean one. Measured again whenever the
        points have doubled; if it changed, everything is smoothed again."""
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

    def at(self, x: float, near: float = np.inf) -> int | None:
        """Index of the point nearest to ``x``; None if the curve does not reach there, within ``near``."""
        there = self.raw.x
        if not len(there) or not there[0] - near <= x <= there[-1] + near:
            return None
        after = min(int(np.searchsorted(there, x)), len(there) - 1)
        return after - 1 if after and x - there[after - 1] <= there[after] - x else after

    @property
    def last(self) -> tuple[float, float] | None:
        """The line's end: its newest finite point, smoothed if the line is."""
        series = self.smooth if self.smooth is not None else self.raw
        for index in range(len(series) - 1, max(-1, len(series) - 100), -1):
            if np.isfinite(series.y[index]):
                return float(series.x[index]), float(series.y[index])
        return None


def less(base: Points | None, axis: Axis, x: Floats, values: Floats) -> Floats:
    """The values at ``x`` minus those of ``base``; NaN beyond its ends."""
    if base is None:
        return values
    there, off = np.array(base.along(axis)), np.array(base.values)
    finite = np.isfinite(off)
    if not finite.any():
        return np.full_like(values, np.nan)
    difference: Floats = values - np.interp(x, there[finite], off[finite], left=np.nan, right=np.nan)
    return difference


def _copied(values: object, first: int, last: int) -> Floats:
    # Copied: an array that lends its memory could not grow.
    return np.array(memoryview(values)[first:last], np.float64)  # type: ignore[arg-type]


def extent(parts: Sequence[Floats], *, trimmed: bool) -> tuple[float, float]:
    """The least and the largest finite value; above it if there is none. ``trimmed``: without outliers, which
    are further from the middle half of the values than 1.5 times its range (Tukey's fences)."""
    values = np.concatenate(parts) if parts else np.empty(0)
    values = values[np.isfinite(values)]
    if not len(values):
        return np.inf, -np.inf
    low, high = float(values.min()), float(values.max())
    if trimmed:
        first, third = (float(each) for each in np.percentile(values, (25, 75)))
        room = 1.5 * (third - first)
        if room > 0:
            return max(low, first - room), min(high, third + room)
    return low, high


def logarithms(y: Floats) -> Floats:
    """Base-10 logarithms; a value without one leaves a gap, as NaN does."""
    positive = y > 0
    return np.where(positive, np.log10(np.where(positive, y, 1.0)), np.nan)
