"""This laptop's hardware, and how it protects runs. Blocks: run in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from core.doctor.view import Examined, note, ok, warning
from core.runtime import awake
from core.supervisor import seals
from core.telemetry.gpus import Gpus
from core.vocabulary import units
from core.vocabulary.answers import Finding
from core.walls import levels

TOPIC = "machine"
CLOCK_S = 5.0
"""Least difference between clocks that is reported: more than telemetry's delay on a slow network."""
TRAINER_BYTES = 1 << 30
_FIRST_SENSIBLE_S = 1_767_225_600.0  # 2026-01-01


def check_gpu(view: Examined, find: Callable[[], Gpus] = Gpus.find) -> Finding:
    """The GPUs that the driver reports. Only the deep check shows whether TensorFlow can use them."""
    reading = view.state.me.reading if view.state.me else None
    if reading is not None:
        names, no_gpu = tuple(gpu.name for gpu in reading.gpus), reading.no_gpu
    else:
        gpus = find()
        names, no_gpu = gpus.names, gpus.no_gpu
        gpus.close()
    if names:
        return ok("gpu", TOPIC, f"GPU: {', '.join(names)}.")
    fix = "Training on the CPU works. TensorFlow uses only NVIDIA's graphics cards."
    return note("no-gpu", TOPIC, no_gpu or "CPU only: no GPU was found.", fix)


def check_memory(view: Examined, system: Callable[[], object] = psutil.virtual_memory) -> Finding:
    available = int(getattr(system(), "available", 0))
    said = f"{units.size(available)} of memory is available"
    if available < TRAINER_BYTES:
        return warning(
            "memory-low",
            TOPIC,
            f"Only {said}; a trainer needs about 1 GB.",
            "Close programs before training.",
        )
    return ok("memory", TOPIC, f"{said}.")


def check_sealing(
    view: Examined,
    find: Callable[[], seals.Seal] = seals.find,
    why_none: Callable[[], str] = seals.why_none,
) -> Finding:
    """For scripts that communicate through TensorFlow; all others use TLS, on any laptop."""
    if find():
        what = "Trainers that connect through TensorFlow have a sealed network of their own: only "
        return ok("sealed", TOPIC, f"{what}members of their run can reach them.")
    return warning(
        "not-sealed",
        TOPIC,
        "Scripts with a strategy that is not a mirrored one connect through TensorFlow's port, which has "
        f"neither password nor encryption. It cannot be sealed here: {why_none()}. Such runs are refused.",
        f"All other scripts connect over TLS, on any laptop. {seals.how_to_allow()}",
        command=seals.command_to_allow(),
    )


def check_walls(view: Examined, find: Callable[[], levels.Level] = levels.found) -> Finding:
    """Whether walls confine scripts from other laptops."""
    level = find()
    if level.walls == "none":
        return warning(
            "no-walls",
            TOPIC,
            "This system cannot keep other laptops' scripts out of your files: a script that you allow can "
            "do anything you can do.",
            "Allow scripts only from people you trust. "
            f"Linux {levels.FIRST} and later can, if Landlock is on.",
        )
    said = f"Scripts of other laptops run within walls (Landlock, level {level.landlock})"
    if level.gaps:
        open_ones = {"network": "connect to any address", "processes": "end your other programs"}
        since = " and ".join(f"{open_ones[gap]} (until Linux {levels.GAPS[gap][1]})" for gap in level.gaps)
        return note("walls-older", TOPIC, f"{said}, but can still {since}.", "A newer Linux closes this gap.")
    return ok("walls", TOPIC, f"{said}.")


def check_sleep(view: Examined, kept_by: Callable[[], str] = awake.kept_by) -> Finding:
    """Whether Tandem can keep the laptop awake: it does so for a moment."""
    if not view.settings.stay_awake:
        return note(
            "may-sleep",
            TOPIC,
            "This laptop may fall asleep while it trains: the setting is off.",
            "Turn on *Keep this laptop awake while it trains* in Settings.",
        )
    if kept_by():
        return ok("awake", TOPIC, "This laptop stays awake while it trains, with its lid open.")
    return note(
        "may-sleep",
        TOPIC,
        "Tandem can't keep this laptop awake while it trains.",
        "For long trainings, turn off automatic suspend in the system settings.",
    )


def check_clock(view: Examined, now: Callable[[], float] = time.time) -> Finding:
    """Compares the clock with those of linked laptops, by their readings, which are about a second old.
    Without any, only detects impossible dates."""
    here_s = now()
    if here_s < _FIRST_SENSIBLE_S:
        return warning(
            "clock-wrong",
            TOPIC,
            f"This laptop's clock says {time.strftime('%Y-%m-%d', time.gmtime(here_s))}.",
            "Set date and time, preferably automatically; the history is sorted by it.",
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
                f"This laptop's clock is {units.duration(abs(apart_s))} {which} the clock of "
                f"{device.shown_name}.",
                "Turn on automatic time on both. Training works, but the times in the history differ.",
            )
    return ok("clock", TOPIC, "The clock is plausible" + (" and agrees with the others." if linked else "."))
