"""What the supervision of one trainer consists of: where it is, its limits, its driver's tasks. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.vocabulary.limits import LOAD_S, STOP_S

Phase = Literal["booting", "running", "meeting", "knocking", "unmet", "leaving"]
"""``knocking``: the peers' ports are being tried. ``unmet``: they were, and the limit has not run out yet."""

Rung = Literal["none", "asked", "terminated", "killed"]
"""How far up the stop ladder it is."""

Answer = Literal["answers", "refused", "silent", "unreachable"]
"""``refused``: the laptop is there but nothing listens on that port. ``silent``: no answer at all."""

Force = Literal[0, 1, 2]
"""0: the ladder from its first rung. 1: SIGTERM now. 2: SIGKILL now."""

Effect = Literal["train", "stop", "terminate", "kill", "try-peers"]
"""What the driver has to do: send an order, send a signal to the group, or knock at the peers' ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """All in seconds. The limit on meeting comes with the order."""

    boot_s: float = LOAD_S
    grace_s: float = STOP_S[0]
    """From the Stop order to SIGTERM: not sooner than the run itself loses its patience."""
    terminate_s: float = 5.0
    leave_s: float = 15.0
    """From the trainer's last report to the end of its process."""
    drain_s: float = 2.0
    """A dead trainer's pipes are read for so long: a grandchild may hold them open for ever."""
    knock_s: float = 3.0
    """How long before the end of the meeting the peers' ports are tried."""
    own_verdict_s: float = 15.0
    """After the end of the meeting, where the trainer itself says who did not come."""
