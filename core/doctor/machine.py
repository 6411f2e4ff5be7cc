"""What this laptop can compute with, and how a run's traffic is protected. Blocks: run in a thread."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from core.doctor.view import View, note, ok, warning
from core.telemetry.gpus import Gpus
from core.vocabulary.answers import Finding

TOPIC = "machine"
CLOCK_S = 5.0
"""More than telemetry's own age: a second, and a slow network."""
TRAINER_BYTES = 1 << 30
_PROC = Path("/proc/sys")
_FIRST_SENSIBLE_S = 1_767_225_600.0  # 2026-01-01


def check_gpu(view: View, find: Callable[[], Gpus] = Gpus.find) -> Finding:
    """Said of the driver's reading; whether TensorFlow can use it is what the deep look tells."""
    reading = view.state.me.reading if view.state.me else None
    if reading is not None:
        names, no_gpu = tuple(gpu.name for gpu in reading.gpus), reading.no_gpu
    else:
        gpus = find()
        names, no_gpu = gpus.names, gpus.no_gpu
        gpus.close()
    nvidia = [name for name in names if "nvidia" in name.lower()]
    if nvidia:
        return ok("gpu", TOPIC, f"GPU: {', '.join(nvidia)}.")
    if names:
        return note(
            "gpu-unused",
            TOPIC,
            f"{', '.join(names)} can't be used by TensorFlow as it is installed; training is on the CPU.",
            "TensorFlow's own packages use NVIDIA GPUs only.",
        )
    return note("no-gpu", TOPIC, no_gpu or "CPU only: no GPU was found.", "Training on the CPU works.")


def check_memory(view: View, system: Callable[[], object] = psutil.virtual_memory) -> Finding:
    available = int(getattr(system(), "available", 0))
    said = f"{available / 1e9:.1f} GB of memory is available"
    if available < TRAINER_BYTES:
        return warning(
            "memory-low",
            TOPIC,
            f"Only {said}; a trainer needs about 1 GB.",
            "Close programs before training.",
        )
    return ok("memory", TOPIC, f"{said}.")


def check_sealing(view: View, proc: Path = _PROC) -> Finding:
    """What is true of this version: trainers that meet by TensorFlow are not sealed."""
    return warning(
        "not-sealed",
        TOPIC,
        "Scripts that bring another strategy than a mirrored one meet by TensorFlow, whose port is open to "
        "your network while their run lasts: it has neither password nor encryption. "
        f"{_namespaces(proc)}",
        "Run such scripts in networks whose members you trust (at home, a hotspot of your own), or keep "
        "strangers off ports 20000 to 32000 with the firewall. All others meet over TLS.",
    )


def check_clock(view: View, now: Callable[[], float] = time.time) -> Finding:
    """Against the linked laptops, whose readings are about a second old; by itself only against nonsense."""
    here_s = now()
    if here_s < _FIRST_SENSIBLE_S:
        return warning(
            "clock-wrong",
            TOPIC,
            f"This laptop's clock says {time.strftime('%Y-%m-%d', time.gmtime(here_s))}.",
            "Set date and time, best automatically; the history is sorted by it.",
        )
    linked = [device for device in view.state.devices.values() if device.linked and device.reading]
    for device in linked:
        assert device.reading is not None
        apart_s = here_s - device.reading.at_s
        if abs(apart_s) > CLOCK_S:
            which = "ahead of" if apart_s > 0 else "behind"
            return warning(
                "clocks-differ",
                TOPIC,
                f"This laptop's clock is {abs(apart_s):.0f} s {which} the clock of {device.shown_name}.",
                "Switch automatic time on, on both. Training works; the times in the history differ.",
            )
    return ok("clock", TOPIC, "The clock is plausible" + (" and agrees with the others." if linked else "."))


def _namespaces(proc: Path) -> str:
    return (
        _linux_namespaces(proc)
        if sys.platform == "linux"
        else "This system has no namespaces that could close it."
    )


def _linux_namespaces(proc: Path) -> str:
    if _value(proc / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "User namespaces, which could close it, are restricted by AppArmor here."
    switches = ("kernel/unprivileged_userns_clone", "user/max_user_namespaces")
    if any(_value(proc / switch) == "0" for switch in switches):
        return "User namespaces, which could close it, are switched off here."
    if not _can_unshare():
        return "User namespaces, which could close it, are not allowed here."
    return "User namespaces, which could close it, are available here, but this version does not use them."


def _can_unshare() -> bool:
    program = shutil.which("unshare")
    if program is None:
        return False
    asked = [program, "--user", "--map-root-user", "--net", "true"]
    try:
        return subprocess.run(asked, capture_output=True, stdin=subprocess.DEVNULL, timeout=5).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _value(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
