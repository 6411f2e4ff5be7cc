"""A stand-in for ``psutil`` whose numbers a test sets, and its clock."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from core.telemetry.gpus import Gpus
from core.telemetry.sampler import Sampler


class FakeSystem:
    def __init__(self) -> None:
        self.seconds = 100.0
        self.bytes: dict[str, tuple[int, int]] = {"lo": (0, 0), "wlan0": (0, 0)}
        self.sensors: dict[str, list[float]] | None = {}
        self.battery: SimpleNamespace | None = SimpleNamespace(percent=80, power_plugged=False)
        self.free: int | None = 7 << 30
        self.memory = SimpleNamespace(total=16 << 30, available=12 << 30)

    def clock(self) -> float:
        return self.seconds

    def disk_usage(self, folder: str) -> SimpleNamespace:
        if self.free is None:
            raise FileNotFoundError(folder)
        return SimpleNamespace(free=self.free)

    def cpu_percent(self, interval: float | None) -> float:
        assert interval is None, "it would block"
        return 12.5

    def virtual_memory(self) -> SimpleNamespace:
        return self.memory

    def net_io_counters(self, pernic: bool) -> dict[str, SimpleNamespace]:
        assert pernic
        return {name: SimpleNamespace(bytes_sent=s, bytes_recv=r) for name, (s, r) in self.bytes.items()}

    def sensors_battery(self) -> SimpleNamespace | None:
        return self.battery

    def sensors_temperatures(self) -> dict[str, list[SimpleNamespace]]:
        if self.sensors is None:
            raise AttributeError("sensors_temperatures")
        return {
            name: [SimpleNamespace(current=value) for value in values]
            for name, values in self.sensors.items()
        }

    def sampler(self, net: Path) -> Sampler:
        gpus = Gpus(None, "CPU only: a test.")
        return Sampler(gpus, disk=net, system=self, clock=self.clock, now=lambda: 1_800_000_000.0, net=net)
