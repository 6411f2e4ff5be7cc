"""A run's phases with their data, and how it ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.bounds import Few, Name, Word
from core.vocabulary.errors import OVERTAKEN, Problem
from core.vocabulary.progress import Audits
from core.vocabulary.wire import Tagged

# --- the run -----------------------------------------------------------------------------------------------


class Planning(Tagged, frozen=True, kw_only=True):
    """The project is being read and the plan made."""


class Preparing(Tagged, frozen=True, kw_only=True):
    """Members give consent and receive the project's files."""


class Starting(Tagged, frozen=True, kw_only=True):
    """Trainers start and meet each other; ends with the first step."""


class Training(Tagged, frozen=True, kw_only=True):
    """Steps are being reported."""


class Stopping(Tagged, frozen=True, kw_only=True):
    """The run is ending: trainers finish their step, callbacks end, outputs are fetched."""

    back: Few[Name] = ()
    """It stops only to go on at once, with these laptops as well."""


class Finished(Tagged, frozen=True, kw_only=True):
    """The script ran to its end on every member."""


class Stopped(Tagged, frozen=True, kw_only=True):
    """A user ended it. ``by`` is the name of the device where Stop was pressed."""

    by: Name = ""
    goes_on: bool = False
    """Not by a user: a run that resumes this one follows at once."""
    back: Few[Name] = ()
    """The laptops in that run that were not in this one at its end."""


class Failed(Tagged, frozen=True, kw_only=True):
    """It ended with a failure; ``problem`` says which and how to fix it."""

    problem: Problem


Phase = Planning | Preparing | Starting | Training | Stopping | Finished | Stopped | Failed
Outcome = Finished | Stopped | Failed

NEXT: dict[type, tuple[type, ...]] = {
    Planning: (Preparing, Stopping, Stopped, Failed),
    Preparing: (Starting, Stopping, Stopped, Failed),
    Starting: (Training, Stopping, Finished, Stopped, Failed),
    Training: (Stopping, Finished, Stopped, Failed),
    Stopping: (Finished, Stopped, Failed),
    Finished: (),
    Stopped: (),
    Failed: (),
}
"""The phases that may follow each."""


def ended(phase: Phase) -> bool:
    return isinstance(phase, Finished | Stopped | Failed)


def goes_on(phase: Phase) -> bool:
    """Whether another run continues this one at once."""
    return isinstance(phase, Stopped) and phase.goes_on


def is_followed(phase: Phase) -> bool:
    """Whether another run goes on with the training at once; also from another laptop's state, while this run
    is a record of its own."""
    return goes_on(phase) or (isinstance(phase, Failed) and phase.problem.code == OVERTAKEN)


# --- one member --------------------------------------------------------------------------------------------

MemberPhase = Literal[
    "waiting", "consent", "receiving", "prepared", "starting", "meeting", "training", "stopping", "ended"
]
"""A member's present activity: ``consent`` waits for its user, ``meeting`` waits for the other trainers."""


# --- how a trainer process ended ----------------------------------------------------------------------------

ExitReason = Literal[
    "finished", "stopped", "script-error", "out-of-memory", "lost-peer", "never-met", "killed"
]


ARGUMENTS_REFUSED = "script-arguments"
"""Code of a script that refused its arguments, which are the same on every member."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How one trainer ended. ``problem`` is set for every reason but finished and stopped; with stopped only
    if the training goes back (code ``goes-back``)."""

    reason: ExitReason
    problem: Problem | None = None
    weights_sha256: Word = ""
    """Digest of every fitted model's weights: equal on all members of a managed run."""
    shared: bool = True
    """False: the script ended without training anything across the members."""
    audits: Audits | None = None
