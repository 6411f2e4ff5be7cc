"""Takes a reading of this laptop on request. Blocks a few milliseconds: runs on the telemetry thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from core.telemetry.gpus import Gpus
from core.vocabulary.readings import Reading

_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "acpitz")
Counters = dict[str, tuple[int, int]]
"""Bytes sent and received so far, by interface."""


class Sampler:
    """Rates are since the previous sample. ``disk``: any folder on the disk whose free space is reported.

    ``system`` is ``psutil``, or a stand-in for it.
    """

    def __init__(
        self,
        gpus: Gpus,
        *,
        disk: Path | None = None,
        system: Any = psutil,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        net: Path = Path("/sys/class/net"),
    ) -> None:
        self._gpus = gpus
        self._disk = disk
        self._system = system
        self._clock = clock
        self._now = now
        self._net = net
        system.cpu_percent(interval=None)  # psutil counts from the previous call
        self._before = (clock(), self._counters())

    def sample(self) -> Reading:
        memory = self._system.virtual_memory()
        sent, received = self._rates()
        battery = self._battery()
        runs_on_it = battery is not None and battery.power_plugged is False
        return Reading(
            at_s=self._now(),
            cpu_pct=float(self._system.cpu_percent(interval=None)),
            memory_used_bytes=int(memory.total - memory.available),
            memory_total_bytes=int(memory.total),
            sent_bytes_s=sent,
            received_bytes_s=received,
            temperature_c=self._temperature(),
            disk_free_bytes=self._free(),
            battery_pct=float(battery.percent) if runs_on_it else None,
            has_battery=battery is not None,
            gpus=self._gpus.read(),
            no_gpu=self._gpus.no_gpu,
        )

    def _rates(self) -> tuple[float, float]:
        then, before = self._before
        now, counters = self._clock(), self._counters()
        self._before = (now, counters)
        seconds = max(now - then, 1e-3)
        # An interface that came, went or restarted its counters since then has no rate yet.
        both = [(before[name], counters[name]) for name in counters.keys() & before.keys()]
        sent = sum(max(0, new[0] - old[0]) for old, new in both)
        received = sum(max(0, new[1] - old[1]) for old, new in both)
        return sent / seconds, received / seconds

    def _counters(self) -> Counters:
        every = self._system.net_io_counters(pernic=True)
        real = {name for name in every if (self._net / name / "device").exists()}
        # Bridges, tunnels and containers' interfaces would count the same bytes twice. Where no interface is
        # a real card (a container, a Mac), every interface but the loopback counts.
        chosen = real or {name for name in every if not name.startswith("lo")}
        return {name: (every[name].bytes_sent, every[name].bytes_recv) for name in chosen}

    def _free(self) -> int | None:
        try:
            return None if self._disk is None else int(self._system.disk_usage(str(self._disk)).free)
        except OSError:
            return None  # the folder is gone, or its disk does not answer

    def _battery(self) -> Any:
        """As psutil reports it: ``percent``, and ``power_plugged``, None where that is unknown."""
        try:
            return self._system.sensors_battery()
        except (AttributeError, OSError, ValueError):
            return None  # a system without such a reading; drivers may fail

    def _temperature(self) -> float | None:
        try:
            sensors = self._system.sensors_temperatures()
        except (AttributeError, OSError, ValueError):
            return None  # macOS and Windows have no such reading; drivers may fail
        for name in _CPU_SENSORS:
            values = [sensor.current for sensor in sensors.get(name, ()) if sensor.current]
            if values:
                return float(max(values))
        return None
