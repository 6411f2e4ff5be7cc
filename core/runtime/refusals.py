"""Connections that were closed unserved: counted by reason, told at a bounded rate. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

TELL_EVERY_S = 10.0


class Refusals:
    """``now_s``: a monotonic clock. ``tell`` gets a line for the log."""

    def __init__(self, now_s: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._now_s = now_s
        self._tell = tell
        self._told_s: float | None = None
        self.by_reason: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self.by_reason.total()

    def add(self, host: str, why: str) -> None:
        self.by_reason[why] += 1
        now_s = self._now_s()
        # Anybody on the network can cause refusals: they must not fill the log.
        if self._told_s is None or now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            self._tell(f"refused a connection from {host}: {why} ({self.total} refused so far)")
