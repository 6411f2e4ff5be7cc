"""Lets a trainer step back behind the window and whatever else a person does on a laptop meanwhile.

The nodes profit, too: they seal and pass on what trainers exchange, and a gradient that waits for a busy
processor holds up every member.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import psutil

NICE = 10
"""What `nice` adds by default: about a tenth of an ordinary program's time where both want all there is."""


def step_back(pid: int) -> None:
    """Call before the process has threads: each begins with the priority of the one that made it."""
    with contextlib.suppress(OSError, psutil.Error):
        process = psutil.Process(pid)
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            process.nice(min(19, process.nice() + NICE))
    if sys.platform == "linux":
        # A session of its own is a group of its own to the scheduler, and groups are weighed first:
        # https://man7.org/linux/man-pages/man7/sched.7.html, "The autogroup feature".
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(NICE))
