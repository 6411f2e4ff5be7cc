"""How many connections that proved nothing yet may be open: 16 in all, 4 from one address. Pure counting.

The listener admits each connection it accepts, and lets it leave once it is known or gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from core.net.address import plain_host

AT_ONCE = 16
PER_ADDRESS = 4
HANDSHAKE_S = 5.0
"""A stranger that has not said who it is after this is let go."""


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

    @property
    def present(self) -> int:
        return self._present.total()

    def admit(self, host: str) -> Guest | None:
        """A place for a connection from ``host``, or None: close it at once."""
        host = plain_host(host)
        if self.present >= self._at_once or self._present[host] >= self._per_address:
            self._present += Counter()  # forget hosts without a place
            return None
        self._present[host] += 1
        return Guest(lambda: self._leave(host))

    def _leave(self, host: str) -> None:
        self._present[host] -= 1
        if not self._present[host]:
            del self._present[host]
