"""The result of a measurement: numbers with their limits. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One number. ``limit`` None: it has no promise of its own, but explains another."""

    what: str
    value: float
    unit: str = ""
    limit: float | None = None
    at: Literal["most", "least"] = "most"
    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the promise holds; None if there is none. A number that is missing breaks one."""
        if not math.isfinite(self.value):
            return False
        if self.limit is None:
            return None
        return self.value <= self.limit if self.at == "most" else self.value >= self.limit


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement. ``at``: ISO date. ``load``: processes that wanted a core, before and after."""

    name: str
    title: str
    rows: tuple[Row, ...] = ()
    at: str = ""
    machine: str = ""
    seconds: float = 0.0
    load: tuple[float, float] = (0.0, 0.0)
    failure: str = ""
    """Why there are no numbers."""

    @property
    def ok(self) -> bool:
        return not self.failure and all(row.kept is not False for row in self.rows)


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def spread(values: Sequence[float], digits: int = 2) -> str:
    """A note's text: how many values, and their range."""
    return f"{len(values)} rounds, {min(values):.{digits}f} to {max(values):.{digits}f}" if values else "none"


def interval(values: Sequence[float], digits: int = 3) -> str:
    """A note's text: the 95 % confidence interval of the median, whatever the distribution.

    Uses order statistics, with the binomial as normal: Conover, Practical Nonparametric Statistics, 3.2.
    """
    found, count = sorted(values), len(values)
    lowest = math.floor((count - 1.96 * math.sqrt(count)) / 2)
    if lowest < 1:
        return "too few rounds for an interval"
    return f"{count} rounds, median with 95 %: {found[lowest - 1]:.{digits}f} to {found[-lowest]:.{digits}f}"


def foreseen(
    what: str, expected_s: float, range_s: tuple[float, float], came_out_s: float, within: float = 0.2
) -> Row:
    """How far off an expected time was. It may be off by this part, or by as much as the range that was
    shown says."""
    low_s, high_s = range_s
    ends = [abs(expected_s / end_s - 1) for end_s in (low_s, high_s)]
    limit = max(within, round(ends[0] if came_out_s < expected_s else ends[1], 3))
    expected, low, high, came_out = (f"{1000 * each:.3g}" for each in (expected_s, low_s, high_s, came_out_s))
    note = f"expected {expected} ms, {low} to {high}; came out {came_out} ms"
    return Row(what=f"{what}, off by", value=abs(expected_s / came_out_s - 1), limit=limit, note=note)


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Ratios round by round, so that what slows down a whole round slows both sides of its ratio."""
    return [a / b for a, b in zip(over, under, strict=True)]
