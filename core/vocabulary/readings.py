"""A laptop's reports about itself: its hardware (once) and its load (once a second)."""

from __future__ import annotations

import msgspec

from core.vocabulary.bounds import Few, Name, Words


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """Does not change while a node runs. ``memory_bytes`` is the installed main memory."""

    cpu: Name
    cores: int
    memory_bytes: int
    gpus: Few[Name] = ()


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. An unavailable reading is None, and ``why`` gives the reason."""

    name: Name
    use_pct: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    why: Words = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a laptop. ``at_s`` is Unix time on that laptop; rates are bytes a second."""

    at_s: float
    cpu_pct: float
    memory_used_bytes: int
    memory_total_bytes: int
    sent_bytes_s: float
    received_bytes_s: float
    temperature_c: float | None = None
    gpus: Few[GpuReading] = ()
    disk_free_bytes: int | None = None
    """On the disk of its home, which holds runs and received projects; None where unknown."""
    battery_pct: float | None = None
    """Its charge while running on battery; None: plugged in, without a battery, or not reported."""
    has_battery: bool = False
    """If so, it is a laptop with a lid."""
    no_gpu: Words = ""
    """Why ``gpus`` is empty, in words; ``""`` where it is not."""

    @property
    def gpu_pct(self) -> float | None:
        """The mean use of its graphics cards; None where no card reports it."""
        uses = [gpu.use_pct for gpu in self.gpus if gpu.use_pct is not None]
        return sum(uses) / len(uses) if uses else None
