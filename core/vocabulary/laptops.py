"""A run's record of its laptops: their hardware, their load, and when they joined and left."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.bounds import Words
from core.vocabulary.ids import DeviceId
from core.vocabulary.readings import Hardware
from core.vocabulary.versions import Versions
from core.vocabulary.wire import Tagged

Change = Literal["joined", "away", "back", "lost", "left"]
"""``joined``: its trainer computes; ``away``: the laptop is silent, and the run waits; ``lost``: its link was
lost, and the run ended for it; ``left``: its trainer ended by a failure of its own, or the others went on
without it."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A laptop of a run, as of the run's start; None: unknown here."""

    versions: Versions | None = None
    hardware: Hardware | None = None


class LaptopUsed(Tagged, frozen=True, kw_only=True):
    """How busy a laptop was. ``second`` counts from the run's first report, by this node's clock."""

    device: DeviceId
    second: float
    cpu_pct: float
    gpu_pct: float | None = None
    """The mean of its graphics cards; None where no card reports it."""


class MembershipChanged(Tagged, frozen=True, kw_only=True):
    """A laptop joined or left a run. ``at_s`` is Unix time by this node's clock."""

    device: DeviceId
    change: Change
    at_s: float
    second: float | None = None
    """Since the run's first report; None before that."""
    words: Words = ""
    """The reason, if reported."""
