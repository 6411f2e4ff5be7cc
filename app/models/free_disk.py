"""Whether a run fits on the disks of the other laptops, as far as they tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from core.doctor.files import LITTLE_BYTES, TOO_LITTLE_BYTES
from core.vocabulary.answers import Finding
from core.vocabulary.state import Device
from core.vocabulary.text import plain

Level = Literal["ok", "warning", "error"]


def level(device: Device) -> Level | None:
    """By the doctor's own limits; None where nothing is told."""
    free = device.reading.disk_free_bytes if device.reading is not None else None
    if free is None:
        return None
    if free < TOO_LITTLE_BYTES:
        return "error"
    return "warning" if free < LITTLE_BYTES else "ok"


def lines(devices: Iterable[Device], project_bytes: int) -> list[Finding]:
    """One for each laptop that tells. ``project_bytes``: what may have to be sent there."""
    return [_line(device, found, project_bytes) for device in devices if (found := level(device))]


def _line(device: Device, found: Level, project_bytes: int) -> Finding:
    assert device.reading is not None
    free = max(0, device.reading.disk_free_bytes or 0)
    name = plain(device.shown_name, 40)
    said = f"{_room(free)} is free on the disk of {name}"
    if found == "error":
        what = f"Only {said}: a run would fail."
    elif free < project_bytes:
        found, what = "warning", f"Only {said}, and the project takes {_room(project_bytes)}."
    else:
        what = f"{said}." if found == "ok" else f"Only {said}."
    fix = f"Make room on {name}: delete old runs in its history, or other files there."
    return Finding(code="disk-there", topic="run", level=found, what=what, fix="" if found == "ok" else fix)


def _room(size: int) -> str:
    """In powers of ten, as disks are sold and as the doctor says it of this laptop's own."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
