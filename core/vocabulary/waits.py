"""A run's waits for members, with their beginnings and causes: trainers' observations of each other, and
the verdict."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.bounds import Few, Words
from core.vocabulary.ids import DeviceId

Activity = Literal["exchange", "importing", "compiling", "callback", "step", "script"]
"""A trainer's activity. ``exchange``: waiting for other members; ``script``: anything not listed."""

Cause = Literal["wire", "script", "starting", "stopped", "silent", "connection", "away"]
"""Why a run waits for a laptop.

``wire``: its numbers are on their way; ``script``: its trainer is in its own code; ``starting``: TensorFlow
loads there; ``stopped``: its trainer's process is stopped (SIGSTOP, a debugger); ``silent``: its trainer
reports nothing; ``connection``: it and another trainer have no connection; ``away``: the laptop itself is
silent, and may sleep or have lost its network.
"""


class PeerWait(msgspec.Struct, frozen=True, kw_only=True):
    """A member that a trainer waits for. Byte counts are of the numbers awaited now."""

    rank: int
    lasted_s: float
    bytes_come: int = 0
    bytes_total: int = 0
    bytes_s: float = 0.0
    """Their recent rate."""
    connected: bool = True
    heard_s: float = 0.0
    """Time since anything arrived from it, keep-alives included."""


class TrainerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The activity of a trainer that has ended no meeting with the others for ``lasted_s`` seconds."""

    activity: Activity
    where: Words = ""
    """File, line and function of the script: ``train.py, line 12, in on_epoch_end``."""
    lasted_s: float = 0.0
    peers: Few[PeerWait] = ()
    stopped: bool = False
    """Its process is stopped; reported by its node."""
    held: bool = False
    """Its process reports nothing although it has not ended; reported by its node. Native code may hold
    Python's interpreter, so that no thread there can report."""
    cores: float = 0.0
    """Processors used by a process that is ``held``."""


class WaitsFor(msgspec.Struct, frozen=True, kw_only=True):
    """The run waits for a laptop. Times are as of the event, which comes again every few seconds."""

    device: DeviceId
    cause: Cause
    lasted_s: float
    activity: Activity | None = None
    """Its trainer's activity, if that is the cause."""
    where: Words = ""
    """File, line and function of the script there."""
    bytes_come: int = 0
    bytes_total: int = 0
    since_s: float | None = None
    """If it is away: since when (Unix time by the starter's clock)."""
    held: bool = False
    """Its trainer can't report; native code may hold Python's interpreter."""
    cores: float = 0.0
    """Processors that it uses, where it is ``held``."""
    left_s: float | None = None
    """Time left until everything has arrived, at the recent rate; if it is away, until the run is given
    up."""
