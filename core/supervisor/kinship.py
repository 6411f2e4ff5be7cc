"""Tells a trainer's processes, including everything its script starts, from the user's other processes.

On Linux a trainer lowers a hard limit that the system no longer uses (RLIMIT_LOCKS: setrlimit(2), "Linux
2.4.24 and earlier"). Its children inherit it through sessions, namespaces and other programs, and cannot
raise it without privilege. Other systems check sessions and parents, which a process can leave behind.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

import psutil

_LOCKS = 10
_MARK = 1 << 40
_running: set[int] = set()


def on_start(pid: int) -> None:
    """A trainer was started."""
    _running.add(pid)


def on_end(pid: int) -> None:
    """A trainer was reaped: its id may be reused."""
    _running.discard(pid)


if sys.platform == "linux":
    import resource

    def mark() -> None:
        """Mark this process and everything that it starts as a trainer's. Call before it starts any."""
        hard = resource.getrlimit(_LOCKS)[1]
        lower = _MARK if hard == resource.RLIM_INFINITY else min(_MARK, max(0, hard - 1))
        resource.setrlimit(_LOCKS, (lower, lower))

    def is_of_a_trainer(pid: int) -> bool:
        """Raises ``OSError`` where the process is gone or inaccessible."""
        return _most_locks(pid) < _most_locks(os.getpid())

    def _most_locks(pid: int) -> float:
        # Not prlimit(2), which requires the same group as well: newgrp(1) may have changed it.
        hard = re.search(
            r"^Max file locks +\S+ +(\S+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE
        )
        if hard is None:
            raise OSError(f"the limits of process {pid} are unknown")
        return math.inf if hard[1] == "unlimited" else int(hard[1])

else:

    def mark() -> None:
        """Does nothing: this system has no lasting mark."""

    def is_of_a_trainer(pid: int) -> bool:
        """Raises ``OSError`` where the process is gone or inaccessible."""
        return descends(pid)


def descends(pid: int) -> bool:
    """Whether a running trainer is its ancestor, or leads its session. Raises ``OSError``."""
    try:
        process = psutil.Process(pid)
        kin = {pid, *(parent.pid for parent in process.parents())}
    except psutil.Error as error:
        raise OSError(str(error)) from error
    if sys.platform != "win32":
        kin.add(os.getsid(pid))
    return not kin.isdisjoint(_running)
