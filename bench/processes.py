"""The cost of a process, seen from outside. Linux only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import psutil

MB = 1_000_000
TENSORFLOW = "tensorflow"
_ASLEEP = (psutil.STATUS_SLEEPING, psutil.STATUS_IDLE)


def cpu_s(pid: int) -> float:
    """User and system seconds of the process and its children so far, including those that ended."""
    process = psutil.Process(pid)
    own = process.cpu_times()
    spent = own.user + own.system + own.children_user + own.children_system
    for child in process.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent += times.user + times.system
    return spent


def own_cpu_s(pid: int) -> float:
    """User and system seconds of the process alone."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident and proportional memory: in the latter, shared memory counts in parts."""
    info = psutil.Process(pid).memory_full_info()
    return info.rss / MB, info.pss / MB


def has_loaded(pid: int, library: str) -> bool:
    """Whether a file whose path contains ``library`` is mapped in the process: its compiled parts are."""
    return library in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")


async def wait_at_rest(pid: int, limit_s: float = 120.0, quiet_s: float = 1.5) -> None:
    """Waits until the process has slept and used hardly any CPU for ``quiet_s``. Raises TimeoutError.

    One that waits for a core or a disk may use none for longer, and has more to do.
    """
    spent, since = cpu_s(pid), time.monotonic()
    async with asyncio.timeout(limit_s):
        while time.monotonic() - since < quiet_s:
            await asyncio.sleep(0.1)
            now = cpu_s(pid)
            if now - spent > 0.02 or psutil.Process(pid).status() not in _ASLEEP:
                spent, since = now, time.monotonic()


async def wait_for_child(pid: int, fits: Callable[[psutil.Process], bool], limit_s: float = 120.0) -> int:
    """Waits for the first child that ``fits``. Raises TimeoutError."""
    async with asyncio.timeout(limit_s):
        while True:
            for child in psutil.Process(pid).children():
                try:
                    if fits(child):
                        return child.pid
                except (psutil.NoSuchProcess, OSError):
                    continue
            await asyncio.sleep(0.05)


async def wait_for_no_child(pid: int, limit_s: float = 60.0) -> None:
    """Waits until the process has no child. Raises TimeoutError."""
    async with asyncio.timeout(limit_s):
        while psutil.Process(pid).children():  # noqa: ASYNC110 (another process: nobody tells)
            await asyncio.sleep(0.05)
