"""Each member's cost of a step, and the split of rows that finishes soonest. Pure; no TensorFlow."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Cost:
    """A member needs ``fixed_s + row_s * rows`` seconds for a step, and can hold ``most`` rows (None: any
    number)."""

    fixed_s: float
    row_s: float
    most: int | None = None

    def of(self, rows: int) -> float:
        """Seconds for ``rows``. A member without rows computes one row whose result is ignored."""
        return self.fixed_s + self.row_s * max(1, rows)

    def slower(self, factor: float) -> Cost:
        return Cost(factor * self.fixed_s, factor * self.row_s, self.most)


def line(few: int, few_s: float, many: int, many_s: float, most: int | None = None) -> Cost:
    """The cost through two measurements, ``few < many`` rows; neither part is negative."""
    if few >= many:
        return Cost(0.0, many_s / max(1, many), most)
    row_s = max(0.0, (many_s - few_s) / (many - few))
    fixed_s = many_s - row_s * many
    return Cost(fixed_s, row_s, most) if fixed_s > 0 else Cost(0.0, many_s / many, most)


def together_s(costs: Sequence[Cost], rows: Sequence[int]) -> float:
    """Seconds until the slowest member has done its rows."""
    return max(cost.of(own) for cost, own in zip(costs, rows, strict=True))


def fastest_rows(rows: int, costs: Sequence[Cost]) -> tuple[int, ...]:
    """Rows of each member, ``rows`` in all, that minimise ``together_s``.

    Each member has at most the rows that it can hold. Raises ValueError if all members together cannot hold
    them.
    """
    most = [rows if cost.most is None else min(rows, cost.most) for cost in costs]
    if rows < 0 or sum(most) < rows:
        raise ValueError(f"{rows} rows do not fit where {most} do")
    low, high = 0.0, max(cost.of(rows) for cost in costs)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if sum(_within(middle, costs, most)) < rows:
            low = middle
        else:
            high = middle
    # Rows that fit below the least time are part of a best answer; each further row goes to the member that
    # finishes it soonest.
    given = _within(low, costs, most)
    while sum(given) > rows:  # all costs alike and zero: any answer is as good
        given[given.index(max(given))] -= 1
    soonest = [(costs[rank].of(own + 1), rank) for rank, own in enumerate(given) if own < most[rank]]
    heapq.heapify(soonest)
    for _ in range(rows - sum(given)):
        _, rank = heapq.heappop(soonest)
        given[rank] += 1
        if given[rank] < most[rank]:
            heapq.heappush(soonest, (costs[rank].of(given[rank] + 1), rank))
    return tuple(given)


def _within(seconds: float, costs: Sequence[Cost], most: Sequence[int]) -> list[int]:
    """The rows that each member can do in ``seconds``."""
    given = []
    for cost, limit in zip(costs, most, strict=True):
        spare_s = seconds - cost.fixed_s
        if spare_s <= 0:
            given.append(0)
        else:
            given.append(limit if spare_s >= cost.row_s * limit else int(spare_s / cost.row_s))
    return given
