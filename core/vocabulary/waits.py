"""Whom a run waits for, since when, and why: what trainers see of each other, and the verdict made of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.ids import DeviceId

Activity = Literal["exchange", "importing", "compiling", "callback", "step", "script"]
"""What a trainer does. ``exchange``: it waits for other members; ``script``: none of the others."""

Cause = Literal["wire", "script", "starting", "stopped", "silent", "connection", "away"]
"""Why a run waits for a laptop.

``wire``: its numbers are on their way; ``script``: its trainer is in its own code; ``starting``: TensorFlow
loads there; ``stopped``: its trainer's process is stopped (SIGSTOP, a debugger); ``silent``: its trainer says
nothing; ``connection``: it and another trainer have no connection; ``away``: nothing comes from the laptop
itself, which may sleep or have lost its network.
"""


class PeerWait(msgspec.Struct, frozen=True, kw_only=True):
    """A member of which a trainer still needs something. Bytes are of the numbers that it waits for now."""

    rank: int
    lasted_s: float
    bytes_come: int = 0
    bytes_total: int = 0
    bytes_s: float = 0.0
    """How fast they came lately."""
    connected: bool = True
    heard_s: float = 0.0
    """Since anything came from it, keep-alives included."""


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """What a trainer does that has ended no meeting with the others for ``lasted_s`` seconds."""

    activity: Activity
    where: str = ""
    """File, line and function of the script: ``train.py, line 12, in on_epoch_end``."""
    lasted_s: float = 0.0
    peers: tuple[PeerWait, ...] = ()
    stopped: bool = False
    """Its process is stopped: said by its node."""
    held: bool = False
    """Its process says nothing although it has not ended: said by its node. Native code may hold Python's
    interpreter, so that no thread there can say what it does."""
    cores: float = 0.0
    """Processors that a process which is ``held`` uses."""


class WaitsFor(msgspec.Struct, frozen=True, kw_only=True):
    """The run waits for a laptop. Times are as of the event, which comes again every few seconds."""

    device: DeviceId
    cause: Cause
    lasted_s: float
    activity: Activity | None = None
    """What its trainer does, where that is the cause."""
    where: str = ""
    """File, line and function of the script there."""
    bytes_come: int = 0
    bytes_total: int = 0
    since_s: float | None = None
    """Where it is away: since when, Unix time as the starter's clock has it."""
    held: bool = False
    """Nothing there can say what it does, as native code may hold Python's interpreter."""
    cores: float = 0.0
    """Processors that it uses, where it is ``held``."""
    left_s: float | None = None
    """Until all of it has come, as fast as it came lately. Where it is away: until the run is given up."""
