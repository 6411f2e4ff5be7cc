"""A slower laptop on this machine: processes that get a fraction of a core, however much of it is free.

It uses a kernel quota if we may create a control group (as root), else by stopping and continuing them. The
latter is coarser: every thread of a process has to wake up to be stopped.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

QUOTA_PERIOD_S = 0.012
"""Short compared with a step, so that nobody waits long for a slowed member to wake up."""
STOP_PERIOD_S = 0.03

_GROUPS = Path("/sys/fs/cgroup")
_numbers = itertools.count()


@contextlib.contextmanager
def slowed(pids: Sequence[int], part: float) -> Iterator[str]:
    """Inside, the processes together get ``part`` of one core. Yields a description of how that is done."""
    group = _quota(part)
    if group is None:
        with _duty_cycle(pids, part):
            yield "stopped and continued"
        return
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield "CPU quota"
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                (group.parent / "cgroup.procs").write_text(str(pid))
        with contextlib.suppress(OSError):  # A process that is just ending stays in it for a moment.
            group.rmdir()


def _quota(part: float) -> Path | None:
    """A new control group with that much of a core; None if we may not create one."""
    period_us = round(QUOTA_PERIOD_S * 1e6)
    quota_us = round(period_us * part)
    name = f"tandem-bench-{os.getpid()}-{next(_numbers)}"
    for group, limits in (
        (_GROUPS / "cpu" / name, {"cpu.cfs_period_us": f"{period_us}", "cpu.cfs_quota_us": f"{quota_us}"}),
        (_GROUPS / name, {"cpu.max": f"{quota_us} {period_us}"}),
    ):
        if not (group.parent / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                for file, words in limits.items():
                    (group / file).write_text(words)
            except OSError:
                group.rmdir()
                continue
            return group
    return None


@contextlib.contextmanager
def _duty_cycle(pids: Sequence[int], part: float) -> Iterator[None]:
    ended = threading.Event()

    def turn() -> None:
        while not ended.is_set():
            _send(pids, signal.SIGSTOP)
            ended.wait(STOP_PERIOD_S * (1 - part))
            _send(pids, signal.SIGCONT)
            ended.wait(STOP_PERIOD_S * part)

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _send(pids: Sequence[int], which: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)
