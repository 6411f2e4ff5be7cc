"""What holds strangers back: few connections that proved nothing yet at once, and pauses after failures.

At most 16 such connections are open in all, 4 from one address; addresses at which paired devices were last
reached have 4 of their own each, which nobody else can use up. The listener admits each connection that it
accepts, and lets it leave once it is known or gone. After three failures in a row comes a pause of 60 s,
doubled each time up to an hour. Whoever is closed unserved is counted, and it is logged rarely. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from core.net.address import plain_host

AT_ONCE = 16
PER_ADDRESS = 4
FAILURES_ALLOWED = 3
FIRST_S = 60.0
LONGEST_S = 3600.0


class Guest:
    """One stranger's place. ``leave`` gives it back; a second time it does nothing."""

    def __init__(self, on_leave: Callable[[], None]) -> None:
        self._on_leave: Callable[[], None] | None = on_leave

    def leave(self) -> None:
        on_leave, self._on_leave = self._on_leave, None
        if on_leave is not None:
            on_leave()


class Strangers:
    """The places, on the core thread."""

    def __init__(self, at_once: int = AT_ONCE, per_address: int = PER_ADDRESS) -> None:
        self._at_once, self._per_address = at_once, per_address
        self._present: Counter[str] = Counter()
        self._known: frozenset[str] = frozenset()

    @property
    def present(self) -> int:
        return self._present.total()

    def keep_places(self, hosts: Iterable[str]) -> None:
        """From now on these addresses, and no others, have places of their own."""
        self._known = frozenset(plain_host(host) for host in hosts)

    def admit(self, host: str) -> Guest | None:
        """A place for a connection from ``host``, or None: close it at once."""
        host = plain_host(host)
        unknown = sum(count for each, count in self._present.items() if each not in self._known)
        full = host not in self._known and unknown >= self._at_once
        if full or self._present[host] >= self._per_address:
            self._present += Counter()  # forget hosts without a place
            return None
        self._present[host] += 1
        return Guest(lambda: self._leave(host))

    def _leave(self, host: str) -> None:
        self._present[host] -= 1
        if not self._present[host]:
            del self._present[host]


@dataclass(frozen=True, slots=True)
class Pause:
    """How often it failed, and until when (clock of the machine, seconds) nothing is tried."""

    failures: int = 0
    pauses: int = 0
    until_s: float = 0.0
    last_failure_s: float = 0.0

    def left_s(self, now_s: float) -> float:
        return max(0.0, self.until_s - now_s)

    def after_failure(self, now_s: float) -> Pause:
        # A quiet hour after the last failure and its pause forgives.
        quiet_s = now_s - max(self.last_failure_s, self.until_s)
        before = self if quiet_s < LONGEST_S else Pause()
        counted = replace(before, failures=before.failures + 1, last_failure_s=now_s)
        if counted.failures < FAILURES_ALLOWED:
            return counted
        length_s = min(FIRST_S * 2.0**counted.pauses, LONGEST_S)
        return replace(counted, failures=0, pauses=min(counted.pauses + 1, 16), until_s=now_s + length_s)


TELL_EVERY_S = 10.0
TELL_HOST_EVERY_S = 60.0
TOLD_AT_ONCE = 8
"""Lines in a row. Then one each ``TELL_EVERY_S``: anybody on the network can cause refusals."""
_HOSTS = 256


class Refusals:
    """Connections that were closed unserved, by reason; each host is named in the log, once a minute at most.

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
    """How often a host was, and when a line told it last (seconds of the clock)."""

    times: int = 0
    told_s: float | None = None
