"""Promises in seconds that also hold on a busy machine."""

from __future__ import annotations

import time
from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")
_WITHOUT_PRESSURE = 10.0
"""Extra time allowed if the kernel does not report how busy the machine is."""


def _stalled_s() -> float | None:
    """Seconds since boot in which some process waited for a processor (PSI)."""
    try:
        some = _PRESSURE.read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


class Stopwatch:
    """Measures from ``begin`` on. Time spent waiting for a busy machine's processors is not counted."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self._stalled_s = _stalled_s()

    def kept(self, at_s: float, promise_s: float) -> bool:
        """Whether an event at ``at_s`` (``time.monotonic``) came in time. Ask soon afterwards."""
        now_s = _stalled_s()
        if now_s is None or self._stalled_s is None:
            return at_s - self.began_s <= promise_s * _WITHOUT_PRESSURE
        return at_s - self.began_s <= promise_s + (now_s - self._stalled_s)
