"""The NVIDIA GPUs of this laptop, or why it has none. Blocks: runs on the telemetry thread.

GPUs of other makers are left out: TensorFlow cannot train on them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.telemetry.nvidia import NO_DRIVER, Nvidia
from core.vocabulary.readings import GpuReading

_NVIDIA = 0x10DE


class Gpus:
    """Open from ``find`` to ``close``. ``no_gpu`` explains why TensorFlow will train on the CPU."""

    def __init__(self, nvidia: Nvidia | None, no_gpu: str) -> None:
        self._nvidia = nvidia
        self.no_gpu = no_gpu

    @classmethod
    def find(
        cls,
        open_nvidia: Callable[[], Nvidia | str] = Nvidia.open,
        pci: Path = Path("/sys/bus/pci/devices"),
    ) -> Gpus:
        nvidia = open_nvidia()
        if not isinstance(nvidia, str):
            return cls(nvidia, "")
        if nvidia == NO_DRIVER and _is_without_driver(pci):
            nvidia = "there is an NVIDIA card, but no NVIDIA driver is installed"
        return cls(None, f"CPU only: {nvidia}.")

    @property
    def names(self) -> tuple[str, ...]:
        return self._nvidia.names if self._nvidia is not None else ()

    def read(self) -> tuple[GpuReading, ...]:
        return self._nvidia.read() if self._nvidia is not None else ()

    def close(self) -> None:
        if self._nvidia is not None:
            self._nvidia.close()


def _is_without_driver(pci: Path) -> bool:
    """Whether an NVIDIA display controller (PCI class 0x03) sits in this laptop, driver or not."""
    return any(
        _hexadecimal(device / "vendor") == _NVIDIA and (_hexadecimal(device / "class") or 0) >> 16 == 0x03
        for device in pci.glob("*")
    )


def _hexadecimal(path: Path) -> int | None:
    try:
        return int(path.read_text(), 16)
    except (OSError, ValueError):
        return None
