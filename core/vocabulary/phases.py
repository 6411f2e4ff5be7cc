"""Where a run is in its life, and how it ended. Data of a phase sits on that phase."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.wire import Tagged

# --- the run -----------------------------------------------------------------------------------------------


class Planning(Tagged, frozen=True, kw_only=True):
    """The project is being read and the plan made."""


class Preparing(Tagged, frozen=True, kw_only=True):
    """Members give consent and receive the project's files."""


class Starting(Tagged, frozen=True, kw_only=True):
    """Trainers start and meet each other; ends with the first step."""


class Training(Tagged, frozen=True, kw_only=True):
    """Steps come in."""


class Recovering(Tagged, frozen=True, kw_only=True):
    """A member was lost; a new generation is made from the newest common checkpoint."""

    lost: str = ""


class Stopping(Tagged, frozen=True, kw_only=True):
    """Asked to end: trainers finish their step, callbacks end, outputs come back."""


class Finished(Tagged, frozen=True, kw_only=True):
    """The script ran to its end on every member."""


class Stopped(Tagged, frozen=True, kw_only=True):
    """A user ended it. ``by`` is the name of the device where that was asked."""

    by: str = ""


class Failed(Tagged, frozen=True, kw_only=True):
    """It ended by a failure; ``problem`` says which and how to mend it."""

    problem: Problem


Phase = Planning | Preparing | Starting | Training | Recovering | Stopping | Finished | Stopped | Failed
Outcome = Finished | Stopped | Failed

NEXT: dict[type, tuple[type, ...]] = {
    Planning: (Preparing, Stopping, Stopped, Failed),
    Preparing: (Starting, Stopping, Stopped, Failed),
    Starting: (Training, Stopping, Finished, Stopped, Failed),
    Training: (Recovering, Stopping, Finished, Stopped, Failed),
    Recovering: (Training, Stopping, Stopped, Failed),
    Stopping: (Finished, Stopped, Failed),
    Finished: (),
    Stopped: (),
    Failed: (),
}
"""Which phase may follow which."""


def ended(phase: Phase) -> bool:
    return isinstance(phase, Finished | Stopped | Failed)


# --- one member --------------------------------------------------------------------------------------------

MemberPhase = Literal[
    "waiting", "consent", "receiving", "prepared", "starting", "meeting", "training", "stopping", "ended"
]
"""What a member is doing: ``consent`` waits for its user, ``meeting`` waits for the other trainers."""


# --- how a trainer process ended ----------------------------------------------------------------------------

ExitReason = Literal[
    "finished", "stopped", "script-error", "out-of-memory", "lost-peer", "never-met", "killed"
]


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How one trainer ended. ``problem`` is there for every reason but finished and stopped."""

    reason: ExitReason
    problem: Problem | None = None
    weights_sha256: str = ""
    """Digest of every fitted model's weights: equal on all members of a managed run."""
    shared: bool = True
    """False: the script ended without training anything across the members."""
