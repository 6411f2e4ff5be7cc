"""The machine of a measurement, and its load."""

from __future__ import annotations

import os

import psutil

from core.vocabulary import units


def words() -> str:
    """Cores, memory and GPU, for the table's head."""
    return f"{os.cpu_count()} cores, {units.size(psutil.virtual_memory().total)}, {_gpu()}"


def load() -> float:
    """Processes that wanted a core, averaged over the last minute."""
    return os.getloadavg()[0]


def taken_s() -> float:
    """Seconds so far in which something here wanted a core and the host of this virtual machine gave it to
    others; 0 if the system does not report it."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def _gpu() -> str:
    import pynvml  # type: ignore[import-untyped, unused-ignore]

    try:
        pynvml.nvmlInit()
        return str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))
    except pynvml.NVMLError:
        return "no GPU"
