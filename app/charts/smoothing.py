"""Distance-aware smoothing: a debiased exponential moving average over the axis, not over the count.

For evenly spaced points it equals TensorBoard's (``vz_line_chart2/line-chart.ts``, ``resmoothDataset``):
non-finite values pass through and are not counted. For uneven ones, as in a thinned record, a distant point
weighs as little as if the points between were there.
"""

from __future__ import annotations

import numpy as np

from app.charts.series import Floats

_MOST_DECAY = 500.0
"""Maximum decay of one piece, as a power of e: beyond it numbers leave the range of a float."""


class Smoother:
    """Continues where it stopped: smooth new values in any number of pieces.

    ``weight``: 0 to below 1, the share of a point's weight left one ``unit`` of the axis further on.
    """

    def __init__(self, weight: float, unit: float = 1.0) -> None:
        self._decay = -np.log(weight) / unit if weight > 0 else np.inf
        self._last_x: float | None = None
        self._sum = self._weights = 0.0
        """Sums of the values so far and of their weights, decayed to the last one."""

    def next(self, x: Floats, values: Floats) -> Floats:
        """The smoothed values, shape (n,) as given. ``x`` must not decrease."""
        smoothed = values.copy()
        counted = np.isfinite(values)
        smoothed[counted] = self._next(x[counted], values[counted])
        return smoothed

    def _next(self, x: Floats, values: Floats) -> Floats:
        if not len(x) or not np.isfinite(self._decay):
            return values
        before = x[0] if self._last_x is None else self._last_x
        decayed = (x - before) * self._decay
        self._last_x = float(x[-1])
        averages = np.empty_like(values)
        start, base = 0, 0.0
        while start < len(x):
            end = max(start + 1, int(np.searchsorted(decayed, base + _MOST_DECAY, "right")))
            grown = np.exp(np.minimum(decayed[start:end] - base, _MOST_DECAY))
            if decayed[start] - base > _MOST_DECAY:
                self._sum = self._weights = 0.0  # so far away that nothing before counts
                grown[0] = 1.0
            sums = self._sum + np.cumsum(values[start:end] * grown)
            weights = self._weights + np.cumsum(grown)
            averages[start:end] = sums / weights
            self._sum, self._weights = float(sums[-1] / grown[-1]), float(weights[-1] / grown[-1])
            start, base = end, float(decayed[end - 1])
        return averages
