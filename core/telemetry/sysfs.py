"""Graphics cards as Linux lists them in ``/sys/class/drm``, and the readings of AMD's and Intel's.

Blocks: runs on the telemetry thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from core.vocabulary.readings import GpuReading
from core.vocabulary.text import joined

NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
_PCI_NAMES = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))
_WHY_LITTLE = "no use, memory or power: Intel's driver tells them to root only"


@dataclass(frozen=True, slots=True)
class PciCard:
    """``folder`` is the PCI device's; ``model`` its device number."""

    vendor: int
    model: int
    folder: Path


def cards(root: Path = Path("/sys/class/drm")) -> list[PciCard]:
    """Every card with a PCI device, in order; nothing on systems without sysfs."""
    found = []
    for card in sorted(root.glob("card*")):
        if not re.fullmatch(r"card\d+", card.name):
            continue  # card0-HDMI-A-1 is a connector
        vendor, model = hexadecimal(card / "device/vendor"), hexadecimal(card / "device/device")
        if vendor is not None and model is not None:
            found.append(PciCard(vendor, model, card / "device"))
    return found


def nvidia_without_driver(root: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether an NVIDIA display controller (PCI class 0x03) sits in this laptop, driver or not."""
    return any(
        hexadecimal(device / "vendor") == NVIDIA and (hexadecimal(device / "class") or 0) >> 16 == 0x03
        for device in root.glob("*")
    )


def number(path: Path) -> int | None:
    """A file with one decimal number; None where it is missing or the driver reports an error."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def hexadecimal(path: Path) -> int | None:
    try:
        return int(path.read_text(), 16)
    except (OSError, ValueError):
        return None


def model_name(card: PciCard, maker: str, lists: tuple[Path, ...] = _PCI_NAMES) -> str:
    """The marketing name in brackets of the system's list of PCI devices, else the maker and the number."""
    heading, entry = f"{card.vendor:04x}", f"\t{card.model:04x}"
    for path in lists:
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                within = False
                for line in file:
                    if line.startswith(heading):
                        within = True
                    elif within and line.startswith(entry):
                        words = line[len(entry) :].strip()
                        bracketed = re.search(r"\[([^\]]+)\]", words)
                        return f"{maker} {bracketed[1] if bracketed else words}"
                    elif within and line[:1] not in "\t#\n":
                        break
        except OSError:
            continue
    return f"{maker} GPU {card.model:04x}"


class Amd:
    """The AMD cards among ``cards``."""

    def __init__(self, cards: list[PciCard]) -> None:
        self._cards = [card for card in cards if card.vendor == AMD]
        self.names = tuple(model_name(card, "AMD") for card in self._cards)

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(_read_amd(card, name) for card, name in zip(self._cards, self.names, strict=True))

    def close(self) -> None:
        """Nothing is held open."""


def _read_amd(card: PciCard, name: str) -> GpuReading:
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


class Intel:
    """The Intel cards among ``cards``."""

    def __init__(self, cards: list[PciCard]) -> None:
        self._cards = [card for card in cards if card.vendor == INTEL]
        self.names = tuple(model_name(card, "Intel") for card in self._cards)

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(_read_intel(card, name) for card, name in zip(self._cards, self.names, strict=True))

    def close(self) -> None:
        """Nothing is held open."""


def _read_intel(card: PciCard, name: str) -> GpuReading:
    temperature = _sensor(card.folder, "temp*_input")
    return GpuReading(
        name=name, temperature_c=None if temperature is None else temperature / 1000, why=_WHY_LITTLE
    )


def _sensor(folder: Path, pattern: str) -> int | None:
    """hwmon: temperatures in millidegrees, power in microwatts."""
    values = (number(path) for path in sorted(folder.glob(f"hwmon/hwmon*/{pattern}")))
    return next((value for value in values if value is not None), None)
