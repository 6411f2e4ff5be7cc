"""The state, limits and effects of one trainer's supervision. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.vocabulary.limits import LOAD_S, STOP_S

Phase = Literal["booting", "running", "meeting", "probing", "unmet", "leaving"]
"""``probing``: trying the peers' ports. ``unmet``: they were tried, and the limit has not passed yet."""

Rung = Literal["none", "asked", "terminated", "killed"]
"""A trainer's position on the stop ladder."""

Answer = Literal["answers", "refused", "silent", "unreachable"]
"""``refused``: the laptop is there but nothing listens on that port. ``silent``: no answer at all."""

Force = Literal[0, 1, 2]
"""0: the ladder from its first rung. 1: SIGTERM now. 2: SIGKILL now."""

Effect = Literal["train", "stop", "terminate", "kill", "try-peers"]
"""Actions for the driver: send an order, send a signal to the group, or try the peers' ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """In seconds unless noted. The limit on meeting comes with the order."""

    boot_s: float = LOAD_S
    grace_s: float = STOP_S[0]
    """Time from the Stop order to SIGTERM: no sooner than the run itself gives up waiting."""
    terminate_s: float = 5.0
    leave_s: float = 15.0
    """Time from the trainer's last report to the end of its process."""
    drain_s: float = 2.0
    """How long a dead trainer's pipes are read: a process that it started may never close them."""
    probe_s: float = 3.0
    """How long before the meeting's limit the peers' ports are tried."""
    own_verdict_s: float = 15.0
    """After the meeting's limit, where the trainer itself reports the missing members."""
    output_bytes_s: float = 8e6
    """Rate limit of a trainer's output: reading takes its node's time."""
