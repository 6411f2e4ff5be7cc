"""Intel GPUs: sysfs tells little of them to an ordinary user. Blocks: lives on the telemetry thread."""

from __future__ import annotations

from core.telemetry.sysfs import INTEL, Card, model_name, number
from core.vocabulary.readings import GpuReading

WHY = "no use, memory or power: Intel's driver tells them to root only"


class Intel:
    """The Intel cards among ``cards``."""

    def __init__(self, cards: list[Card]) -> None:
        self._cards = [card for card in cards if card.vendor == INTEL]
        self.names = tuple(model_name(card, "Intel") for card in self._cards)

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(_one(card, name) for card, name in zip(self._cards, self.names, strict=True))

    def close(self) -> None:
        """Nothing is held open."""


def _one(card: Card, name: str) -> GpuReading:
    sensors = (number(path) for path in sorted(card.folder.glob("hwmon/hwmon*/temp*_input")))
    temperature = next((value for value in sensors if value is not None), None)
    return GpuReading(name=name, temperature_c=None if temperature is None else temperature / 1000, why=WHY)
