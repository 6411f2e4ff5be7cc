"""What a laptop says of itself: what it has (once) and how busy it is (once a second)."""

from __future__ import annotations

import msgspec


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """Does not change while a node runs. ``memory_bytes`` is the installed main memory."""

    cpu: str
    cores: int
    memory_bytes: int
    gpus: tuple[str, ...] = ()


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. A reading that is not to be had is None, and ``why`` says the reason."""

    name: str
    use_pct: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    why: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a laptop. ``at_s`` is Unix time on that laptop; rates are bytes a second."""

    at_s: float
    cpu_pct: float
    memory_used_bytes: int
    memory_total_bytes: int
    sent_bytes_s: float
    received_bytes_s: float
    temperature_c: float | None = None
    gpus: tuple[GpuReading, ...] = ()
    disk_free_bytes: int | None = None
    """On the disk of its home, where runs and received projects are kept; None where nobody can tell."""
    no_gpu: str = ""
    """Why ``gpus`` is empty, in words; ``""`` where it is not."""

    @property
    def gpu_pct(self) -> float | None:
        """The mean use of its cards; None where none tells."""
        uses = [gpu.use_pct for gpu in self.gpus if gpu.use_pct is not None]
        return sum(uses) / len(uses) if uses else None
