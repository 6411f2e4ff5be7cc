"""AMD GPUs by what the amdgpu driver writes into sysfs. Blocks: lives on the telemetry thread."""

from __future__ import annotations

from pathlib import Path

from core.telemetry.source import joined
from core.telemetry.sysfs import AMD, Card, model_name, number
from core.vocabulary.readings import GpuReading


class Amd:
    """The AMD cards among ``cards``."""

    def __init__(self, cards: list[Card]) -> None:
        self._cards = [card for card in cards if card.vendor == AMD]
        self.names = tuple(model_name(card, "AMD") for card in self._cards)

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(_one(card, name) for card, name in zip(self._cards, self.names, strict=True))

    def close(self) -> None:
        """Nothing is held open."""


def _one(card: Card, name: str) -> GpuReading:
    reasons = []
    use = number(card.folder / "gpu_busy_percent")
    used, total = (number(card.folder / f"mem_info_vram_{part}") for part in ("used", "total"))
    temperature = _sensor(card.folder, "temp1_input")
    power = _sensor(card.folder, "power1_average") or _sensor(card.folder, "power1_input")
    for what, value in (("use", use), ("memory", used), ("temperature", temperature), ("power", power)):
        if value is None:
            reasons.append(f"no {what}: the amdgpu driver does not tell it")
    return GpuReading(
        name=name,
        use_pct=None if use is None else float(use),
        memory_used_bytes=used,
        memory_total_bytes=total,
        temperature_c=None if temperature is None else temperature / 1000,
        power_w=None if power is None else power / 1e6,
        why=joined(reasons),
    )


def _sensor(folder: Path, name: str) -> int | None:
    """hwmon: temperatures in millidegrees, power in microwatts."""
    values = (number(path) for path in sorted(folder.glob(f"hwmon/hwmon*/{name}")))
    return next((value for value in values if value is not None), None)
