"""All GPUs of this laptop, or why it has none. Blocks: runs on the telemetry thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from core.telemetry import sysfs
from core.telemetry.nvidia import Nvidia
from core.telemetry.sysfs import Amd, Intel
from core.vocabulary.readings import GpuReading


class GpuSource(Protocol):
    """The GPUs of one vendor."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def read(self) -> tuple[GpuReading, ...]:
        """One reading for each name. Never raises: unavailable values are None, with the reason."""
        ...

    def close(self) -> None: ...


class Gpus:
    """Open from ``find`` to ``close``. ``no_gpu`` explains why TensorFlow will train on the CPU."""

    def __init__(self, sources: Sequence[GpuSource], no_gpu: str) -> None:
        self._sources = sources
        self.no_gpu = no_gpu

    @classmethod
    def find(
        cls,
        open_nvidia: Callable[[], Nvidia | str] = Nvidia.open,
        drm: Path = Path("/sys/class/drm"),
        pci: Path = Path("/sys/bus/pci/devices"),
    ) -> Gpus:
        nvidia = open_nvidia()
        others: list[GpuSource] = [
            source for source in (Amd(sysfs.cards(drm)), Intel(sysfs.cards(drm))) if source.names
        ]
        if not isinstance(nvidia, str):
            return cls([nvidia, *others], "")
        if nvidia == "no NVIDIA driver" and sysfs.nvidia_without_driver(pci):
            nvidia = "there is an NVIDIA card, but no NVIDIA driver is installed"
        if others:
            return cls(others, "")
        return cls([], f"CPU only: {nvidia}, no other graphics card.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for source in self._sources for name in source.names)

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(reading for source in self._sources for reading in source.read())

    def close(self) -> None:
        for source in self._sources:
            source.close()
