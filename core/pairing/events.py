"""What people learn of a pairing; the node makes its own events of these. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from core.net.address import Address
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId


@dataclass(frozen=True, slots=True)
class Began:
    """``incoming``: the other side asked; ``device`` is known then."""

    incoming: bool
    name: str
    address: str
    device: DeviceId | None = None


@dataclass(frozen=True, slots=True)
class CodeShown:
    """``code`` as people read it: ``408 355``. ``warning``: a known name came with a new key."""

    device: DeviceId
    name: str
    code: str
    warning: Problem | None = None


@dataclass(frozen=True, slots=True)
class SaidSame:
    """Our user said *Same*; the other has to."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Proven: now, and only now, ``cert`` (DER) may be stored as a pin."""

    device: DeviceId
    cert: bytes
    name: str
    address: Address


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was stored."""

    device: DeviceId | None
    problem: Problem


Event = Began | CodeShown | SaidSame | Paired | Failed
