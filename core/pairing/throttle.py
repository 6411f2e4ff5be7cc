"""Limits for strangers: pauses after failed pairings, and a bounded log of refused connections.

Three failures in a row cause a pause of 60 s, doubled each time up to an hour. Refused connections are all
counted, but rarely logged. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

FAILURES_ALLOWED = 3
FIRST_S = 60.0
LONGEST_S = 3600.0


@dataclass(frozen=True, slots=True)
class RetryDelay:
    """The number of failures, and until when to pause. Times are seconds of the machine's clock."""

    failures: int = 0
    pauses: int = 0
    until_s: float = 0.0
    last_failure_s: float = 0.0

    def left_s(self, now_s: float) -> float:
        return max(0.0, self.until_s - now_s)

    def after_failure(self, now_s: float) -> RetryDelay:
        # A quiet hour after the last failure and its pause resets the count.
        quiet_s = now_s - max(self.last_failure_s, self.until_s)
        before = self if quiet_s < LONGEST_S else RetryDelay()
        counted = replace(before, failures=before.failures + 1, last_failure_s=now_s)
        if counted.failures < FAILURES_ALLOWED:
            return counted
        length_s = min(FIRST_S * 2.0**counted.pauses, LONGEST_S)
        return replace(counted, failures=0, pauses=min(counted.pauses + 1, 16), until_s=now_s + length_s)


TELL_EVERY_S = 10.0
TELL_HOST_EVERY_S = 60.0
TOLD_AT_ONCE = 8
"""Lines logged without delay, then one every ``TELL_EVERY_S``: anybody on the network can cause refusals."""
_HOSTS = 256


class Refusals:
    """Counts refused connections by reason, and logs each host at most once a minute.

    ``now_s``: a monotonic clock. ``tell`` gets a line for the log. Beyond 256 hosts the oldest is forgotten.
    """

    def __init__(self, now_s: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._now_s = now_s
        self._tell = tell
        self._lines = float(TOLD_AT_ONCE)
        self._counted_s = now_s()
        self._hosts: dict[str, _Refused] = {}
        self.by_reason: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self.by_reason.total()

    def add(self, host: str, why: str) -> None:
        self.by_reason[why] += 1
        now_s = self._now_s()
        refused = self._hosts.get(host) or _Refused()
        refused = replace(refused, times=refused.times + 1)
        passed_s, self._counted_s = now_s - self._counted_s, now_s
        self._lines = min(TOLD_AT_ONCE, self._lines + passed_s / TELL_EVERY_S)
        if self._lines >= 1 and (refused.told_s is None or now_s - refused.told_s >= TELL_HOST_EVERY_S):
            self._lines -= 1
            refused = replace(refused, told_s=now_s)
            self._tell(f"refused a connection from {host}: {why} ({refused.times} of {self.total} so far)")
        if host not in self._hosts and len(self._hosts) >= _HOSTS:
            del self._hosts[next(iter(self._hosts))]
        self._hosts[host] = refused


@dataclass(frozen=True, slots=True)
class _Refused:
    """A host's number of refusals, and when a line last reported it (seconds of the clock)."""

    times: int = 0
    told_s: float | None = None
