"""How many rows a step can have in this laptop's own memory, by what it took with a few of them.

A GPU says itself when it is full (ResourceExhaustedError). A laptop without one would swap, then be ended.
"""

from __future__ import annotations

import sys

import psutil

if sys.platform != "win32":
    import resource

_USED = 0.8
"""Of the memory that is free: the rest is for whoever else needs some meanwhile."""


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    if sys.platform == "win32":
        peak = int(psutil.Process().memory_info().peak_wset)
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak


def fitting_rows(few: int, took_bytes: int, rows: int, free_bytes: int | None = None) -> int:
    """Up to ``rows``, if ``few`` rows raised the peak by ``took_bytes``; at least ``few``, which fitted."""
    if took_bytes <= 0:
        return rows
    if free_bytes is None:
        free_bytes = psutil.virtual_memory().available
    return min(rows, few + int(few * _USED * free_bytes / took_bytes))
