"""Shares that follow the members' speeds during training: measurements in, new shares out. Pure.

Each member gives the same numbers to its own copy, so all reach the same shares without communication.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from core.cluster.costs import Cost, fastest_rows, together_s

LEAST_GAIN = 0.05
"""Least relative gain in step time for which shares change."""
KEPT = 8
"""Number of newest measurements kept of each member."""
SETTLED = 5
"""Measurements needed from every member before shares change, except after a jump."""
ODD = 1.4
JUMP = 3
"""This many consecutive measurements off by more than the factor ``ODD``, in one direction, indicate a new
speed, not chance."""


class Balancer:
    """Shares of one model's batches, ``rows`` rows in total.

    A member's speed is a slowdown factor relative to its cost: the median of its newest measurements.
    ``costs``: as calibrated, or else proportional to rows.
    """

    def __init__(self, rows: int, costs: Sequence[Cost], shares: tuple[int, ...]) -> None:
        """Begins with ``shares``, unless a member cannot hold its share."""
        self.rows = rows
        fit = all(cost.most is None or own <= cost.most for own, cost in zip(shares, costs, strict=True))
        self.shares = shares if fit else fastest_rows(rows, costs)
        """Rows of each member."""
        self._costs = tuple(costs)
        self._newest = [deque([1.0], KEPT) for _ in costs]
        self._odd: list[list[float]] = [[] for _ in costs]
        self._there = tuple(range(len(costs)))

    def divide_among(self, there: Sequence[int]) -> None:
        """Divide all rows among the members with these ranks; the others have left."""
        if self._there == tuple(there):
            return
        self._there = tuple(there)
        self._costs = tuple(
            cost if rank in there else replace(cost, most=0) for rank, cost in enumerate(self._costs)
        )
        if sum(self.rows if cost.most is None else cost.most for cost in self._costs) < self.rows:
            # Trying is the best option left.
            self._costs = tuple(
                replace(cost, most=None if rank in there else 0) for rank, cost in enumerate(self._costs)
            )
        self._odd = [[] for _ in self._costs]
        slower = [median(newest) for newest in self._newest]
        self.shares = fastest_rows(
            self.rows, [cost.slower(factor) for cost, factor in zip(self._costs, slower, strict=True)]
        )

    @property
    def unsure(self) -> bool:
        """Whether a member's speed may have changed: the next few steps should be measured separately."""
        return any(self._odd)

    def measured(self, own_s: Mapping[int, float], wire_s: float) -> bool:
        """Add each present member's own step time, by rank, and the exchange's, in seconds. Returns whether
        shares changed. A step counts for nothing if one of its members has left since."""
        if tuple(own_s) != self._there:
            return False
        jumped = [self._learn(rank, seconds) for rank, seconds in own_s.items()]
        settled = all(len(self._newest[rank]) >= SETTLED for rank in self._there)
        if self.unsure or not (any(jumped) or settled):
            return False
        return self.improve(wire_s)

    def improve(self, wire_s: float) -> bool:
        """Improve the shares by the members' known speeds, if the gain is worth it when the exchange takes
        ``wire_s``. Returns whether they changed."""
        slower = [median(newest) for newest in self._newest]
        costs = [cost.slower(factor) for cost, factor in zip(self._costs, slower, strict=True)]
        shares = fastest_rows(self.rows, costs)
        now_s, then_s = together_s(costs, self.shares), together_s(costs, shares)
        if now_s - then_s < LEAST_GAIN * (now_s + wire_s):
            return False
        self.shares = shares
        self._newest = [deque([factor], KEPT) for factor in slower]
        return True

    def _learn(self, rank: int, seconds: float) -> bool:
        """Add a measurement; returns whether the last few show a new speed."""
        newest, odd = self._newest[rank], self._odd[rank]
        factor = seconds / self._costs[rank].of(self.shares[rank])
        usual = median(newest)
        if usual / ODD < factor < usual * ODD:
            odd.clear()
            newest.append(factor)
            return False
        if odd and (odd[0] > usual) != (factor > usual):
            odd.clear()
        odd.append(factor)
        if len(odd) < JUMP:
            return False
        self._newest[rank] = deque(odd, KEPT)
        odd.clear()
        return True
