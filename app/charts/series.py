"""A curve prepared for drawing: growing arrays, and over them a pyramid of minima and maxima.

The cost of drawing depends on the width, not on the number of points: about one minimum and one maximum per
pixel column, so that no peak is lost. Measured: four million points take pyqtgraph alone two seconds a frame.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST = 1e300
"""Larger values cannot be drawn: a margin around them would overflow."""
BLOCK = 64
"""Points per entry of the pyramid's lowest level; each higher level takes ``FACTOR`` of these."""
FACTOR = 8
FINE = 8
"""Entries per pixel column that are still scanned one by one."""


class Grown:
    """A one-dimensional array that can be appended to and overwritten at its end."""

    def __init__(self) -> None:
        self._room = np.empty(256, np.float64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def view(self) -> Floats:
        return self._room[: self._size]

    def put(self, start: int, values: Floats) -> None:
        """Replaces everything from ``start`` on with ``values``."""
        end = start + len(values)
        if end > len(self._room):
            room = np.empty(max(end, 2 * len(self._room)), np.float64)
            room[:start] = self._room[:start]
            self._room = room
        self._room[start:end] = values
        self._size = end


class Drawn(NamedTuple):
    """``dense``: each entry stands for many points, and ``low`` and ``high`` are their extent."""

    x: Floats
    low: Floats
    high: Floats
    dense: bool

    @property
    def middle(self) -> Floats:
        return (self.low + self.high) / 2 if self.dense else self.low


class _Level:
    def __init__(self) -> None:
        self.low = Grown()
        self.high = Grown()

    def refresh(self, first: int, low: Floats, high: Floats, size: int) -> None:
        """Recomputes the entries from ``first`` on; ``low`` and ``high`` begin with what lies under it."""
        starts = np.arange(0, len(low), size)
        self.low.put(first, np.fmin.reduceat(low, starts))
        self.high.put(first, np.fmax.reduceat(high, starts))


class Series:
    """``x`` must not decrease. Non-finite values leave gaps."""

    def __init__(self) -> None:
        self._x = Grown()
        self._y = Grown()
        self._levels: list[_Level] = []

    def __len__(self) -> int:
        return len(self._x)

    @property
    def x(self) -> Floats:
        return self._x.view

    @property
    def y(self) -> Floats:
        return self._y.view

    def extend(self, x: Floats, y: Floats) -> None:
        """Appends points, shape (n,) each."""
        if not len(x):
            return
        old = len(self)
        self._x.put(old, x)
        self._y.put(old, np.where(np.abs(y) < MOST, y, np.nan))
        low = high = self.y
        size, first = BLOCK, old
        for depth in range(64):
            first //= size
            if depth == len(self._levels):
                if len(low) <= size:
                    return
                self._levels.append(_Level())
                first = 0
            level = self._levels[depth]
            level.refresh(first, low[first * size :], high[first * size :], size)
            low, high, size = level.low.view, level.high.view, FACTOR

    def drawn(self, left: float, right: float, columns: int, *, apart: int = 1) -> Drawn:
        """The curve from ``left`` to ``right`` on ``columns`` pixels, plus one point beyond each end: the
        points themselves if few, else at most one extent per ``apart`` columns."""
        x = self.x
        first = max(0, int(np.searchsorted(x, left, "left")) - 1)
        last = min(len(x), int(np.searchsorted(x, right, "right")) + 1)
        columns = max(1, columns)
        if last - first <= 2 * columns:
            return Drawn(x[first:last], self.y[first:last], self.y[first:last], dense=False)
        size, low, high = 1, self.y, self.y
        for depth, level in enumerate(self._levels):
            if (last - first) // size <= FINE * columns:
                break
            size, low, high = BLOCK * FACTOR**depth, level.low.view, level.high.view
        begin, end = first // size, -(-last // size)
        at, low, high = x[begin * size : last : size], low[begin:end], high[begin:end]
        group = -(-len(at) * apart // columns)
        return Drawn(at[::group], _grouped(np.fmin, low, group), _grouped(np.fmax, high, group), dense=True)


def _grouped(least: np.ufunc, values: Floats, group: int) -> Floats:
    """One of every ``group`` values. Comparing slices of the whole is many times faster than reduceat."""
    whole = len(values) // group * group
    made = values[:whole:group]
    for offset in range(1, group):
        made = least(made, values[offset:whole:group])
    return made if whole == len(values) else np.append(made, least.reduce(values[whole:]))
