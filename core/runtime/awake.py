"""Keeps this laptop from falling asleep while a run is under way.

Uses wakepy: the desktop's session on Linux (GNOME, KDE and others), the systems' own calls on Windows and
macOS. It still sleeps when the lid is closed or its user says so.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakepy import Mode

_log = logging.getLogger(__name__)


def wakelock() -> Mode:
    """Keeps the laptop awake while it is entered. Entering and leaving may block for some seconds."""
    from wakepy import keep  # late: a node without a run does not need it

    return keep.running(on_fail="pass")


def kept_by() -> str:
    """The method that would keep this laptop awake; ``""``: none. May block for some seconds."""
    with wakelock() as lock:
        pass
    return _method(lock)


def _method(lock: Mode) -> str:
    return lock.method.name if lock.method else ""


class Awake:
    """Keeps the laptop awake on request. Uses one thread: the one that takes a lock must release it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="awake")
        self._lock: Mode | None = None

    def keep(self, on: bool) -> None:
        """Keep the laptop awake from now on, or no longer. Returns at once. Calls take effect in order."""
        self._thread.submit(self._keep, on)

    async def close(self) -> None:
        """Let it sleep, and end the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._keep, False)
        self._thread.shutdown(wait=False)

    def _keep(self, on: bool) -> None:
        if on == (self._lock is not None):
            return
        try:
            if self._lock is None:
                self._lock = wakelock()
                self._lock.__enter__()
                _log.info("kept awake by %s", _method(self._lock) or "nothing, since no desktop answers")
            else:
                lock, self._lock = self._lock, None
                lock.__exit__(None, None, None)
        except Exception as error:  # a desktop may answer anything
            _log.warning("this laptop may fall asleep: %s", error)
