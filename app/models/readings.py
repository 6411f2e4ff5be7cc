"""A laptop's reading, line by line: name, fraction, words. Pure."""

from __future__ import annotations

from typing import NamedTuple

from core.vocabulary import units
from core.vocabulary.readings import GpuReading, Reading

HOT_C = 90.0
FULL = 0.95
MOST_GPUS = 4
KEPT = ("GPU", *(f"GPU {number}" for number in range(1, MOST_GPUS + 1)), "CPU", "Memory")
"""Lines with a history: those with a known maximum."""
SLOWEST_FULL_BYTES_S = 1_000_000.0
"""The network bar's full scale is the greatest rate seen, but at least this."""


class ReadingLine(NamedTuple):
    """``part`` None: no reading, and ``words`` say why. ``alarm``: it needs attention."""

    name: str
    part: float | None
    words: str
    alarm: bool = False


def lines_of(reading: Reading, most_bytes_s: float = 0.0) -> list[ReadingLine]:
    """GPU first: people look for it first. ``most_bytes_s``: the greatest network rate seen so far."""
    lines: list[ReadingLine] = []
    if not reading.gpus:
        why = reading.no_gpu.removeprefix("CPU only: ").rstrip(".")
        lines.append(ReadingLine("GPU", None, f"none: {why}" if why else "none"))
    for number, gpu in enumerate(reading.gpus[:MOST_GPUS], start=1):
        lines += _gpu_lines(gpu, f"GPU {number}" if len(reading.gpus) > 1 else "GPU")
    if len(reading.gpus) > MOST_GPUS:
        lines.append(ReadingLine("GPUs", None, f"and {len(reading.gpus) - MOST_GPUS} more, not shown"))
    lines.append(ReadingLine("CPU", reading.cpu_pct / 100, f"{reading.cpu_pct:.0f} %"))
    used, total = reading.memory_used_bytes, reading.memory_total_bytes
    lines.append(_memory("Memory", used, total))
    if reading.temperature_c is not None:
        lines.append(_temperature("CPU temp.", reading.temperature_c))
    rate = reading.sent_bytes_s + reading.received_bytes_s
    words = f"↑ {units.rate(reading.sent_bytes_s)}  ↓ {units.rate(reading.received_bytes_s)}"
    lines.append(ReadingLine("Network", rate / max(most_bytes_s, rate, SLOWEST_FULL_BYTES_S), words))
    return lines


def _gpu_lines(gpu: GpuReading, name: str) -> list[ReadingLine]:
    why = gpu.why or "this GPU's driver does not report it"
    lines = [
        ReadingLine(name, None, f"Use unknown: {why}")
        if gpu.use_pct is None
        else ReadingLine(name, gpu.use_pct / 100, f"{gpu.use_pct:.0f} %")
    ]
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
        lines.append(_memory(f"{name} memory", gpu.memory_used_bytes, gpu.memory_total_bytes))
    elif gpu.use_pct is not None:
        lines.append(ReadingLine(f"{name} memory", None, f"Not known: {why}"))
    if gpu.temperature_c is not None:
        lines.append(_temperature(f"{name} temp.", gpu.temperature_c))
    elif gpu.use_pct is not None:
        lines.append(ReadingLine(f"{name} temp.", None, f"Not known: {why}"))
    return lines


def _memory(name: str, used: int, total: int) -> ReadingLine:
    if total <= 0:
        return ReadingLine(name, None, "Unknown: the system does not report it")
    return ReadingLine(name, used / total, f"{units.size(used)} of {units.size(total)}", used / total > FULL)


def _temperature(name: str, celsius: float) -> ReadingLine:
    return ReadingLine(name, celsius / 100, f"{celsius:.0f} °C", celsius >= HOT_C)
