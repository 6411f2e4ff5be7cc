"""Smoothing as TensorBoard does it: a debiased exponential moving average.

Source: TensorBoard's ``vz_line_chart2/line-chart.ts``, ``resmoothDataset``: values that are no number pass
through and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.charts.series import Floats

_LENGTH = 128
"""Values that one matrix product smooths at once; a Python loop over a million takes a third of a second."""


class Smoother:
    """Goes on where it stopped: smooth what is new, in as many pieces as come. ``weight``: 0 to below 1."""

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self._last = 0.0
        self._count = 0
        powers = weight ** np.arange(_LENGTH + 1)
        distance = np.subtract.outer(np.arange(_LENGTH), np.arange(_LENGTH))
        self._carried = powers[1:]
        self._within = np.where(distance >= 0, (1 - weight) * powers[np.maximum(distance, 0)], 0.0)

    def next(self, values: Floats) -> Floats:
        """The smoothed values, shape (n,) as given."""
        smoothed = values.copy()
        counted = np.isfinite(values)
        smoothed[counted] = self._next(values[counted])
        return smoothed

    def _next(self, values: Floats) -> Floats:
        averages = np.empty_like(values)
        whole = len(values) // _LENGTH * _LENGTH
        blocks = values[:whole].reshape(-1, _LENGTH) @ self._within.T
        carried = self._carry(blocks[:, -1].tolist())
        averages[:whole] = (blocks + np.outer(carried, self._carried)).ravel()
        if rest := len(values) - whole:
            averages[whole:] = self._within[:rest, :rest] @ values[whole:] + self._last * self._carried[:rest]
            self._last = float(averages[-1])
        counts = np.arange(self._count + 1, self._count + len(values) + 1)
        self._count += len(values)
        return np.asarray(averages / (1 - self._weight**counts))

    def _carry(self, ends: Sequence[float]) -> list[float]:
        """The average before each block, from what each block alone ends with."""
        before = []
        fade = float(self._carried[-1])
        for end in ends:
            before.append(self._last)
            self._last = self._last * fade + end
        return before
