"""Promises in seconds, held also where the machine is busy with other things."""

from __future__ import annotations

import time
from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")
_WITHOUT_PRESSURE = 10.0
"""By how much longer something may take where the kernel does not tell how busy the machine is."""


def _stalled_s() -> float | None:
    """Seconds, since the machine started, in which some process waited for a processor (PSI)."""
    try:
        some = _PRESSURE.read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


class Stopwatch:
    """From ``begin`` on. A machine that others keep busy gets the time back for which it made them wait."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self._stalled_s = _stalled_s()

    def kept(self, at_s: float, promise_s: float) -> bool:
        """Whether what happened at ``at_s`` (``time.monotonic``) came soon enough. Ask soon afterwards."""
        now_s = _stalled_s()
        if now_s is None or self._stalled_s is None:
            return at_s - self.began_s <= promise_s * _WITHOUT_PRESSURE
        return at_s - self.began_s <= promise_s + (now_s - self._stalled_s)
