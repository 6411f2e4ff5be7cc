"""This laptop's hardware. Blocks: runs on the telemetry thread."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import psutil

from core.vocabulary.readings import Hardware

_CPUINFO = Path("/proc/cpuinfo")


def read(gpus: tuple[str, ...]) -> Hardware:
    return Hardware(
        cpu=cpu_name(), cores=usable_cores(), memory_bytes=int(psutil.virtual_memory().total), gpus=gpus
    )


def usable_cores() -> int:
    """Logical cores that this process may use: a container or ``taskset`` may give fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def cpu_name(cpuinfo: Path = _CPUINFO) -> str:
    """The vendor's name without trademark signs and the like; the architecture where it is unknown."""
    system = platform.system()
    named = _from_cpuinfo(cpuinfo) or (_from_mac() if system == "Darwin" else "")
    return _tidy(named or platform.processor() or platform.machine())


def _from_cpuinfo(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(\S.*)$", text, re.M)
    return found[1] if found else ""


def _from_mac() -> str:
    try:
        asked = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=2, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _tidy(name: str) -> str:
    name = re.sub(r"\((?:R|TM|C)\)|\bCPU\b|\bProcessor\b|@.*$", " ", name, flags=re.I)
    return " ".join(name.split()) or "unknown CPU"
