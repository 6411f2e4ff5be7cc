"""What a laptop's reading says, line by line: name, part of the whole, words. Pure."""

from __future__ import annotations

from typing import NamedTuple

from app.device_words import size_words
from core.vocabulary.readings import GpuReading, Reading

HOT_C = 90.0
FULL = 0.95
MOST_GPUS = 4
KEPT = ("GPU", *(f"GPU {number}" for number in range(1, MOST_GPUS + 1)), "CPU", "Memory")
"""Lines that are shown over time: those of which one knows what all of it would be."""
SLOWEST_FULL_BYTES_S = 1_000_000.0
"""The network's bar is full at the greatest rate seen, or at this one where all were smaller."""


class Line(NamedTuple):
    """``part`` None: no reading, and ``words`` say why. ``alarm``: it needs a look."""

    name: str
    part: float | None
    words: str
    alarm: bool = False


def lines_of(reading: Reading, most_bytes_s: float = 0.0) -> list[Line]:
    """GPU first: it is what people look for. ``most_bytes_s``: the greatest network rate seen so far."""
    lines: list[Line] = []
    if not reading.gpus:
        why = reading.no_gpu.removeprefix("CPU only: ").rstrip(".")
        lines.append(Line("GPU", None, f"none: {why}" if why else "none"))
    for number, gpu in enumerate(reading.gpus[:MOST_GPUS], start=1):
        lines += _gpu_lines(gpu, f"GPU {number}" if len(reading.gpus) > 1 else "GPU")
    if len(reading.gpus) > MOST_GPUS:
        lines.append(Line("GPUs", None, f"and {len(reading.gpus) - MOST_GPUS} more, not shown"))
    lines.append(Line("CPU", reading.cpu_pct / 100, f"{reading.cpu_pct:.0f} %"))
    used, total = reading.memory_used_bytes, reading.memory_total_bytes
    lines.append(_memory("Memory", used, total))
    if reading.temperature_c is not None:
        lines.append(_temperature("CPU temp.", reading.temperature_c))
    rate = reading.sent_bytes_s + reading.received_bytes_s
    words = f"↑ {_rate(reading.sent_bytes_s)}  ↓ {_rate(reading.received_bytes_s)}"
    lines.append(Line("Network", rate / max(most_bytes_s, rate, SLOWEST_FULL_BYTES_S), words))
    return lines


def _gpu_lines(gpu: GpuReading, name: str) -> list[Line]:
    why = gpu.why or "this GPU's driver does not say"
    lines = [
        Line(name, None, f"Use not known: {why}")
        if gpu.use_pct is None
        else Line(name, gpu.use_pct / 100, f"{gpu.use_pct:.0f} %")
    ]
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
        lines.append(_memory(f"{name} memory", gpu.memory_used_bytes, gpu.memory_total_bytes))
    elif gpu.use_pct is not None:
        lines.append(Line(f"{name} memory", None, f"Not known: {why}"))
    if gpu.temperature_c is not None:
        lines.append(_temperature(f"{name} temp.", gpu.temperature_c))
    elif gpu.use_pct is not None:
        lines.append(Line(f"{name} temp.", None, f"Not known: {why}"))
    return lines


def _memory(name: str, used: int, total: int) -> Line:
    if total <= 0:
        return Line(name, None, "Not known: the system does not say")
    return Line(name, used / total, f"{size_words(used)} of {size_words(total)}", used / total > FULL)


def _temperature(name: str, celsius: float) -> Line:
    return Line(name, celsius / 100, f"{celsius:.0f} °C", celsius >= HOT_C)


def _rate(bytes_s: float) -> str:
    return f"{size_words(max(0, round(bytes_s)))}/s" if bytes_s >= 1024 else "0"
