"""What this laptop can compute with, and how a run's traffic is protected. Blocks: run in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from core.doctor.view import View, note, ok, warning
from core.supervisor import seals
from core.telemetry.gpus import Gpus
from core.vocabulary.answers import Finding

TOPIC = "machine"
CLOCK_S = 5.0
"""More than telemetry's own age: a second, and a slow network."""
TRAINER_BYTES = 1 << 30
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


def check_sealing(
    view: View,
    find: Callable[[], seals.Seal] = seals.find,
    why_none: Callable[[], str] = seals.why_none,
) -> Finding:
    """Of scripts that meet by TensorFlow; all others meet over TLS, on any laptop."""
    match find():
        case "namespace":
            what = "Trainers that meet by TensorFlow are sealed into a network of their own: none but the "
            return ok("sealed", TOPIC, f"{what}members of their run reach them.")
        case "loopback":
            return note(
                "sealed-loopback",
                TOPIC,
                "Trainers that meet by TensorFlow listen on this laptop's loopback alone, so the network "
                f"does not reach them; other users of this laptop could: {why_none()}.",
                seals.how_to_allow(),
            )
    return warning(
        "not-sealed",
        TOPIC,
        "Scripts that bring another strategy than a mirrored one meet by TensorFlow, whose port has "
        f"neither password nor encryption. It cannot be sealed here: {why_none()}. So such runs are refused.",
        "All other scripts meet over TLS. For one run, all users can accept an open port (--open-port), in a "
        f"network whose members they trust. {seals.how_to_allow()}",
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
