"""Shares that follow the members' speeds while they train: measurements in, new shares out. Pure.

Every member feeds its own copy the same numbers, and so all come to the same shares without asking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

from core.cluster.costs import Cost, fastest_rows, together_s

LEAST_GAIN = 0.08
"""Of a step's time: for less, shares stay."""
KEPT = 8
SETTLED = 5
"""So many measurements of every member, before shares change by what is not a jump."""
ODD = 1.4
JUMP = 3
"""This many measurements in a row that differ by this factor from the usual mean a new speed, not chance."""


class Balancer:
    """The shares of one model's steps of ``rows`` rows in all.

    A member's speed is one number, by how much slower it is than its cost says: the median of its newest
    measurements. ``costs`` as calibrated; without calibration proportional to rows.
    """

    def __init__(self, rows: int, costs: Sequence[Cost], shares: tuple[int, ...]) -> None:
        """Begins with ``shares``, unless a member could not hold its own."""
        self.rows = rows
        fit = all(cost.most is None or own <= cost.most for own, cost in zip(shares, costs, strict=True))
        self.shares = shares if fit else fastest_rows(rows, costs)
        """Rows of each member."""
        self._costs = tuple(costs)
        self._newest = [deque([1.0], KEPT) for _ in costs]
        self._odd: list[list[float]] = [[] for _ in costs]

    @property
    def unsure(self) -> bool:
        """A member may have changed its speed: the next few steps are to be measured on their own."""
        return any(self._odd)

    def measured(self, own_s: Sequence[float], wire_s: float) -> bool:
        """Whether shares changed by these: each member's own time in a step, and the time of the exchange."""
        jumped = [self._learn(rank, seconds) for rank, seconds in enumerate(own_s)]
        if self.unsure or not (any(jumped) or all(len(newest) >= SETTLED for newest in self._newest)):
            return False
        return self.improve(wire_s)

    def improve(self, wire_s: float) -> bool:
        """Whether shares changed by what is known of the members, where the exchange takes ``wire_s``."""
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
        """Takes a measurement in; returns whether the member has another speed since the last few."""
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
