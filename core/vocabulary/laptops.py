"""A run's record of its laptops: their hardware, their load, and when they joined and left."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.bounds import Words
from core.vocabulary.errors import BY_A_USER, LEFT_RUN, Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.readings import Hardware
from core.vocabulary.versions import Versions
from core.vocabulary.wire import Tagged

Change = Literal["joined", "away", "back", "lost", "left"]
"""``joined``: its trainer computes; ``away``: the laptop is silent, and the run waits; ``lost``: its trainer
or its link ended unasked, whether or not the others went on; ``left``: its user wished so, its battery was
low, or the script failed there."""


def gone(why: Problem) -> Literal["lost", "left"]:
    """Whether a laptop left or was lost, by the reason for which the others go on without it."""
    return "left" if why.code in (LEFT_RUN, *BY_A_USER) else "lost"


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
