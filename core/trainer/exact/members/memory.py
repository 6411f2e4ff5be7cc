"""Estimates how many rows of a step fit in this laptop's own memory, from a few rows.

A full GPU raises ResourceExhaustedError. Without one the laptop would swap, and then kill the trainer.
"""

from __future__ import annotations

import sys

import psutil

if sys.platform != "win32":
    import resource

_USED = 0.8
"""Usable share of free memory: the rest is left for other processes."""


def peak_bytes() -> int:
    """The peak memory of this process so far."""
    if sys.platform == "win32":
        peak = int(psutil.Process().memory_info().peak_wset)
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak


def free_bytes() -> int:
    return int(psutil.virtual_memory().available)


def fitting_rows(few: int, took_bytes: int, rows: int, free_bytes: int | None = None) -> int:
    """How many of ``rows`` fit, if ``few`` raised the peak by ``took_bytes``; at least ``few``."""
    if took_bytes <= 0:
        return rows
    if free_bytes is None:
        free_bytes = psutil.virtual_memory().available
    return min(rows, few + int(few * _USED * free_bytes / took_bytes))
