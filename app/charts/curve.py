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
    smoothing: float = 0.6
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
    _smoother: Smoother | None = None

    def begin(self, look: Look) -> None:
        """Forget what was made ready: the look has changed."""
        self.raw = Series()
        smoothed = look.smoothing > 0 and not self.dashed
        self._smoother = Smoother(look.smoothing) if smoothed else None
        self.smooth = Series() if smoothed else None

    def catch_up(self, axis: Axis) -> bool:
        """True once every point is taken in; call again otherwise."""
        first, last = len(self.raw), min(len(self.points), len(self.raw) + BITE)
        if last > first:
            x = _copied(self.points.steps if axis == "step" else self.points.seconds, first, last)
            y = _copied(self.points.values, first, last)
            self.raw.extend(x, y)
            if self.smooth is not None and self._smoother is not None:
                self.smooth.extend(x, self._smoother.next(y))
        return last == len(self.points)

    @property
    def span(self) -> tuple[float, float] | None:
        x = self.raw.x
        return (float(x[0]), float(x[-1])) if len(x) else None


def _copied(values: object, first: int, last: int) -> Floats:
    # Copied: an array that lends its memory could not grow any more.
    return np.array(memoryview(values)[first:last], np.float64)  # type: ignore[arg-type]


def logarithms(y: Floats) -> Floats:
    """Powers of ten; what has none leaves a gap, as a number that is none does."""
    positive = y > 0
    return np.where(positive, np.log10(np.where(positive, y, 1.0)), np.nan)
