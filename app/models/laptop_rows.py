"""One row per laptop of a run: role, share, use, waits and state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from app.models import stragglers
from app.words import run_words, wait_words
from core.vocabulary import units
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.laptops import gone
from core.vocabulary.readings import GpuReading, Reading
from core.vocabulary.state import Run, State
from core.vocabulary.text import capitalised, plain

MOST_BYTES_S = 1e12
_TROUBLE = ("away", "stopped", "connection", "silent")
"""Wait reasons that mean trouble rather than slowness."""


class Use(NamedTuple):
    """``part``: 0 to 1, None if unknown; ``words`` give the same or the reason why not, ``note`` the rest."""

    part: float | None = None
    words: str = ""
    note: str = ""


class LaptopRow(NamedTuple):
    name: str
    role: str
    share: str
    gpu: Use
    cpu: Use
    network: tuple[str, str]
    waiting: str
    state: str
    detail: str
    """More about the state, such as since when it is away."""
    troubled: bool
    about: str
    """The whole row as one sentence: for screen readers and as a tooltip."""


def rows(
    run: Run,
    state: State,
    names: Mapping[DeviceId, str],
    back: Mapping[DeviceId, float] | None = None,
) -> dict[DeviceId, LaptopRow]:
    """``back``: laptops that returned a moment ago, and after how many seconds."""
    steps = stragglers.steps_of(run)
    made = {}
    for device in run.members:
        share = run_words.share_words(run, device)
        doing = _doing(run, device, names, (back or {}).get(device))
        made[device] = _row(run, device, names[device], share, steps.get(device), state, doing)
    return made


def away(run: Run) -> dict[DeviceId, float]:
    """Silent laptops, and for how many seconds."""
    waits = run.waiting.waits if run.waiting is not None else ()
    return {wait.device: wait.lasted_s for wait in waits if wait.cause == "away"}


def _doing(
    run: Run, device: DeviceId, names: Mapping[DeviceId, str], back_s: float | None
) -> tuple[str, str, bool]:
    """State, detail, and whether that is trouble."""
    member = run.members[device]
    waits = run.waiting.waits if run.waiting is not None else ()
    if member.left is not None:
        return capitalised(gone(member.left)), plain(member.left.what, 120), True
    awaited = next((wait for wait in waits if wait.device == device), None)
    if awaited is not None:
        return *wait_words.brief(awaited), awaited.cause in _TROUBLE
    words = run_words.member_words(member)
    if member.phase == "receiving" and member.total:
        doing = plain(member.words, 40) or "receiving files"
        words = f"{doing}, {100 * member.done // member.total} %"  # the page says the rest
    state, detail = capitalised(words), ""
    if waits and member.phase in ("meeting", "training"):
        others = dict.fromkeys(names.get(wait.device, short(wait.device)) for wait in waits)
        state = f"Waiting for {' and '.join(others)}"
    elif back_s is not None:
        detail = f"back after {units.duration(back_s)}"
    return state, detail, any(end.problem is not None for end in member.exits.values())


def reading_of(state: State, device: DeviceId) -> Reading | None:
    """The newest reading, while it is connected: an old one says nothing about now."""
    if state.me is not None and device == state.me.device:
        return state.me.reading
    known = state.devices.get(device)
    return known.reading if known is not None and known.linked else None


def gpu_use(reading: Reading | None) -> float | None:
    """Percent, the mean of its cards; None if no card reports it."""
    return reading.gpu_pct if reading is not None else None


def why_no_gpu(run: Run, state: State, names: Mapping[DeviceId, str]) -> str:
    """Why the plots have no GPU use if no laptop of the run reports it; ``""`` if one does, or nobody has
    reported anything yet."""
    readings = {device: reading_of(state, device) for device in run.members}
    heard = {device: reading for device, reading in readings.items() if reading is not None}
    if not heard or any(gpu_use(reading) is not None for reading in heard.values()):
        return ""
    reasons: dict[str, list[str]] = {}
    for device, reading in heard.items():
        why = reading.no_gpu or next((gpu.why for gpu in reading.gpus if gpu.why), "")
        why = plain(why, 200).removeprefix("CPU only: ").rstrip(".") or "CPU only"
        reasons.setdefault(why, []).append(names[device])
    if len(reasons) == 1:
        return f"No GPU use to plot: {next(iter(reasons))}."
    said = "; ".join(f"{' and '.join(laptops)}: {why}" for why, laptops in reasons.items())
    return f"No GPU use to plot. {said}."


def _row(
    run: Run,
    device: DeviceId,
    name: str,
    share: str,
    step: stragglers.StepTime | None,
    state: State,
    doing: tuple[str, str, bool],
) -> LaptopRow:
    reading = reading_of(state, device)
    # Where Tandem shares a fit, nobody needs to know who leads.
    task = run_words.tasks_words(run.plan, device)
    does, detail, troubled = doing
    gpu, cpu, network = _gpu(reading), _cpu(reading), _network(reading)
    waiting = _waiting(step)
    mine = state.me is not None and device == state.me.device
    known = ", ".join(filter(None, (task, share)))
    busy = [f"GPU {gpu.words}" if gpu.words else "", gpu.note, f"CPU {cpu.words}" if cpu.words else ""]
    more = ", ".join(filter(None, (*busy, f"waits {waiting}" if waiting else "")))
    said = ", ".join(filter(None, (f"{does[:1].lower()}{does[1:]}", detail)))
    about = f"{name}{f' ({known})' if known else ''}: {said}"
    return LaptopRow(
        name=name,
        role=" · ".join(filter(None, (task, "this laptop" if mine else ""))),
        share=share,
        gpu=gpu,
        cpu=cpu,
        network=network,
        waiting=waiting,
        state=does,
        detail=detail,
        troubled=troubled,
        about=f"{about}; {more}" if more else about,
    )


def _gpu(reading: Reading | None) -> Use:
    if reading is None:
        return Use()
    if not reading.gpus:
        return Use(words="none", note="")
    use = gpu_use(reading)
    if use is None:
        return Use(words="not known", note=plain(reading.gpus[0].why, 60))
    count = f"{len(reading.gpus)} GPUs" if len(reading.gpus) > 1 else ""
    return Use(use / 100, f"{use:.0f} %", " · ".join(filter(None, (count, *_card(reading.gpus[0])))))


def _card(gpu: GpuReading) -> list[str]:
    """Memory, temperature and power of one card."""
    parts = []
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
        parts.append(units.part(gpu.memory_used_bytes, gpu.memory_total_bytes))
    if gpu.temperature_c is not None:
        parts.append(f"{gpu.temperature_c:.0f} °C")
    if gpu.power_w is not None:
        parts.append(f"{gpu.power_w:.0f} W")
    return parts


def _cpu(reading: Reading | None) -> Use:
    if reading is None:
        return Use()
    note = ""
    if reading.memory_total_bytes > 0:
        note = units.part(reading.memory_used_bytes, reading.memory_total_bytes)
    return Use(reading.cpu_pct / 100, f"{reading.cpu_pct:.0f} %", note)


def _network(reading: Reading | None) -> tuple[str, str]:
    """Sent, received."""
    if reading is None:
        return "", ""
    return f"↑ {_rate(reading.sent_bytes_s)}", f"↓ {_rate(reading.received_bytes_s)}"


def _rate(bytes_s: float) -> str:
    return units.rate(bytes_s) if bytes_s < MOST_BYTES_S else "0"


def _waiting(step: stragglers.StepTime | None) -> str:
    """``4 of 11 ms``."""
    if step is None or step.took_s <= 0:
        return ""
    if step.took_s >= 1:
        return f"{max(0.0, step.waited_s):.1f} of {step.took_s:.1f} s"
    return f"{max(0.0, 1000 * step.waited_s):.0f} of {1000 * step.took_s:.0f} ms"
