"""On what, and beside what, a measurement was made."""

from __future__ import annotations

import os

import psutil


def words() -> str:
    """For the table's head: cores, memory, GPU."""
    memory_gib = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {_gpu()}"


def load() -> float:
    """Processes that wanted a core, averaged over the last minute."""
    return os.getloadavg()[0]


def taken_s() -> float:
    """Seconds so far in which something here wanted a core and the host of this virtual machine gave it to
    others; 0 where the system does not tell."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def _gpu() -> str:
    import pynvml  # type: ignore[import-untyped, unused-ignore]

    try:
        pynvml.nvmlInit()
        return str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))
    except pynvml.NVMLError:
        return "no GPU"
