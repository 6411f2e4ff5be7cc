"""When a link's peer was last heard, and whether the silence is this laptop's own. Pure."""

from __future__ import annotations

from msgspec import structs

from core.link import problems
from core.vocabulary.errors import Problem
from core.vocabulary.limits import SILENT_S

HEARTBEAT_S = 2.0
"""How often an idle side sends a keep-alive, and checks the time."""
AFTER_SLEEP_S = 30.0
"""For this long after this laptop slept, a lost connection is not blamed on the peer."""


class Silence:
    """All times are by a clock that includes the laptop's sleep."""

    def __init__(self, now_s: float) -> None:
        self.heard_s = now_s
        """When the peer was last heard."""
        self._ticked_s = now_s
        self._sleep: tuple[float, float] | None = None
        """When this laptop last slept or froze, and for how many seconds."""

    def tick(self, now_s: float) -> float:
        """Call every ``HEARTBEAT_S``. Returns the seconds that this laptop slept since the last call."""
        self._sleep, gap_s = self._last_sleep(now_s), now_s - self._ticked_s - 2 * HEARTBEAT_S
        self._ticked_s = now_s
        return max(0.0, gap_s)

    def is_tick_late(self, now_s: float) -> bool:
        return now_s - self._ticked_s > 2 * HEARTBEAT_S

    def is_missed(self, now_s: float) -> bool:
        return now_s - self.heard_s >= SILENT_S

    def blamed(self, problem: Problem, name: str, now_s: float) -> Problem:
        """``problem``; for a connection lost soon after this laptop slept, the sleep instead."""
        sleep = self._last_sleep(now_s)
        if sleep is None or now_s - sleep[0] > AFTER_SLEEP_S:
            return problem
        return structs.replace(problems.slept(name, sleep[1]), detail=str(problem))

    def _last_sleep(self, now_s: float) -> tuple[float, float] | None:
        """The last sleep, including one that the next tick has yet to notice."""
        gap_s = now_s - self._ticked_s - HEARTBEAT_S
        return (now_s, gap_s) if gap_s > HEARTBEAT_S else self._sleep
