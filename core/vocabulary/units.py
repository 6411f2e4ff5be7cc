"""Durations, moments, sizes, counts and rates as people read them, on every screen and in every sentence.

Sizes are in powers of 1000, as networks and disks are sold: 1 kB is 1,000 bytes.
"""

from __future__ import annotations

import time


def duration(seconds: float) -> str:
    """``1.4 ms``, ``230 ms``, ``4.2 s``, ``40 s``, ``3 min``, ``5 h``."""
    seconds = max(0.0, seconds)
    if 0 < seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.00995 else f"{_few(1000 * seconds)} ms"
    if seconds < 119.5:
        return f"{_few(seconds) if seconds < 9.95 else f'{seconds:.0f}'} s"
    return f"{seconds / 60:.0f} min" if seconds < 7170 else f"{seconds / 3600:,.0f} h"


def clock(seconds: float) -> str:
    """``0:07``, ``12:30``, ``1:02:03``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(unix_s: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """``2026-11-21 20:12`` in this laptop's local time; ``unknown`` for times that no clock shows."""
    try:
        return time.strftime(form, time.localtime(unix_s))
    except (OverflowError, ValueError, OSError):
        return "unknown"


def number_of(count: int, what: str) -> str:
    """``1 file``, ``1,234 files``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def size(count: float) -> str:
    """``512 bytes``, ``1.4 MB``, ``70.5 MB``, ``640 GB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * unit:
            value = count / unit
            return f"{_few(value)} {name}" if value < 99.95 else f"{value:,.0f} {name}"
    whole = max(0, round(count))
    return "1 byte" if whole == 1 else f"{whole} bytes"


def part(used: float, whole: float) -> str:
    """``5.4 of 17.2 GB``, ``900 MB of 17.2 GB``."""
    less, more = size(used), size(whole)
    number, _, unit = less.rpartition(" ")
    return f"{number if more.endswith(f' {unit}') else less} of {more}"


def rate(bytes_s: float) -> str:
    """``1.4 MB/s``; ``0`` below 1 kB/s, which is negligible."""
    return f"{size(bytes_s)}/s" if bytes_s >= 1000 else "0"


def samples(samples_s: float) -> str:
    """``1,234 samples/s``."""
    return f"{samples_s:,.0f} samples/s"


def steps(steps_s: float) -> str:
    """``12.5 steps/s``."""
    return f"{steps_s:,.1f} steps/s"


def _few(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
