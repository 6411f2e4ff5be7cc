"""Limits connections of strangers: few unauthenticated ones are open at once.

There are 16 places, at most 4 per address. Addresses where known devices were last reached have 4 reserved
places each. A listener admits each connection that it accepts, and releases it once it is known or gone.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from core.net.address import plain_host

AT_ONCE = 16
PER_ADDRESS = 4


class Guest:
    """One stranger's place. ``leave`` releases it; a second call does nothing."""

    def __init__(self, on_leave: Callable[[], None]) -> None:
        self._on_leave: Callable[[], None] | None = on_leave

    def leave(self) -> None:
        on_leave, self._on_leave = self._on_leave, None
        if on_leave is not None:
            on_leave()


class Strangers:
    """The places, for one thread at a time."""

    def __init__(self, at_once: int = AT_ONCE, per_address: int = PER_ADDRESS) -> None:
        self._at_once, self._per_address = at_once, per_address
        self._present: Counter[str] = Counter()
        self._known: frozenset[str] = frozenset()

    @property
    def present(self) -> int:
        return self._present.total()

    def keep_places(self, hosts: Iterable[str]) -> None:
        """Reserve places for exactly these addresses."""
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
