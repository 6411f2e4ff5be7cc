"""One paired device: linked or being called, what can happen to it, what is asked for. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.vocabulary.errors import Problem


@dataclass(frozen=True, slots=True)
class Tries:
    """What came of the calls since the last link that stood."""

    failures: int = 0
    trouble: Problem | None = None
    """Why the last one failed, or the last link ended."""
    told: str = ""
    """The code of the last failure that a person was told of."""
    refusal_tells: bool = False
    """The link was closed without a word, and the device had answered calls of ours: if nobody listens where
    it did, Tandem has ended there. A firewall refuses, too, but did so before."""


@dataclass(frozen=True, slots=True)
class Dialling:
    """Its addresses are being tried."""

    tries: Tries


@dataclass(frozen=True, slots=True)
class Greeting:
    """A connection of ours is open and our hello is said; the device's is to come."""

    tries: Tries


@dataclass(frozen=True, slots=True)
class Paused:
    """The next call comes when the pause is over, or at once where there is hope."""

    tries: Tries


@dataclass(frozen=True, slots=True)
class Linked:
    """``call``: one of ours that is still under way, though the device's own call became the link.
    ``answered``: a call of ours reached the device, so that its port is open to us."""

    since_s: float
    failures: int
    """As many as before the link: one that breaks soon was no success."""
    call: Literal["none", "dialling", "greeting"] = "none"
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Left:
    """Forgotten, or this node ends: no calls any more."""


State = Dialling | Greeting | Paused | Linked | Left


# --- what can happen to it --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hoped:
    """The network changed or shows the device: a call may work now."""


@dataclass(frozen=True, slots=True)
class PauseOver:
    pass


@dataclass(frozen=True, slots=True)
class Reached:
    """An address answered, and the device proved itself there."""


@dataclass(frozen=True, slots=True)
class CallFailed:
    """No address answered, or the connection of our call ended without becoming the link."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class TheirsFailed:
    """A connection that the device opened ended without becoming the link."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class CameUp:
    """A connection became the link, in place of any other. ``ours``: it was our call."""

    ours: bool


@dataclass(frozen=True, slots=True)
class WentDown:
    """The link ended."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Leaving:
    """This side is done with the device."""


Event = Hoped | PauseOver | Reached | CallFailed | TheirsFailed | CameUp | WentDown | Leaving


# --- what it asks its driver to do ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dial:
    """Try its addresses."""


@dataclass(frozen=True, slots=True)
class Greet:
    """Say hello on the connection that was reached."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection that was reached is not needed any more."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Tell ``PauseOver`` after a pause that grows with ``failures``, at least 1."""

    failures: int


@dataclass(frozen=True, slots=True)
class EndPause:
    pass


@dataclass(frozen=True, slots=True)
class StopDialling:
    pass


@dataclass(frozen=True, slots=True)
class TellDown:
    """The node has to know: the link ended, or calls fail for a reason that a person has to mend."""

    problem: Problem


Effect = Dial | Greet | HangUp | Pause | EndPause | StopDialling | TellDown
