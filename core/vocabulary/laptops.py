"""What a run's record says of its laptops: what they are, how busy they were, who came and went."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.ids import DeviceId
from core.vocabulary.readings import Hardware
from core.vocabulary.versions import Versions
from core.vocabulary.wire import Tagged

Change = Literal["joined", "away", "back", "left"]
"""``joined``: its trainer computes; ``away``: nothing comes from the laptop, and the run waits; ``left``: its
trainer ended by a failure."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One laptop of a run, as it was when the run began; None where nobody here knew."""

    versions: Versions | None = None
    hardware: Hardware | None = None


class LaptopUsed(Tagged, frozen=True, kw_only=True):
    """How busy a laptop was. ``second`` counts from the run's first report, by this node's clock."""

    device: DeviceId
    second: float
    cpu_pct: float
    gpu_pct: float | None = None
    """The mean of its cards; None where none tells."""


class MembershipChanged(Tagged, frozen=True, kw_only=True):
    """A laptop came to a run or went. ``at_s`` is Unix time by this node's clock."""

    device: DeviceId
    change: Change
    at_s: float
    second: float | None = None
    """Since the run's first report; None before that."""
    words: str = ""
    """Why, where somebody said so."""
