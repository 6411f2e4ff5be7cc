"""One paired device: its states, events, and effects. Data only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from core.vocabulary.errors import Problem


@dataclass(frozen=True, slots=True)
class Tries:
    """How calls went since the last stable link."""

    failures: int = 0
    trouble: Problem | None = None
    """Why the last call failed, or the last link ended."""
    linked_s: float = -math.inf
    """When the last stable link was lost."""
    restarts: int = 0
    """How often the present call was restarted."""
    told: str = ""
    """The code of the last failure that was reported to the user."""
    refusal_tells: bool = False
    """The link was closed without a goodbye, and the device had answered calls of ours: if its port now
    refuses, Tandem has ended there. A firewall refuses, too, but would have done so before."""


@dataclass(frozen=True, slots=True)
class Calling:
    """Its addresses are being tried."""

    tries: Tries


@dataclass(frozen=True, slots=True)
class Greeting:
    """A connection of ours is open and our hello is sent; the device's is still to come."""

    tries: Tries


@dataclass(frozen=True, slots=True)
class Paused:
    """The next call starts when the pause is over, or as soon as it may succeed."""

    tries: Tries


@dataclass(frozen=True, slots=True)
class Linked:
    """``call``: a call of ours that is still under way although the device's own became the link.
    ``answered``: a call of ours reached the device, so its port is open to us."""

    since_s: float
    failures: int
    """The count of failed calls before the link: it continues if the link breaks soon."""
    call: Literal["none", "dialling", "greeting"] = "none"
    answered: bool = False


@dataclass(frozen=True, slots=True)
class NotCalled:
    """The device is forgotten, or this node ends: it is no longer called."""


State = Calling | Greeting | Paused | Linked | NotCalled


# --- events -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NetworkChanged:
    """The network changed or shows the device: a call may work now."""


@dataclass(frozen=True, slots=True)
class PauseOver:
    pass


@dataclass(frozen=True, slots=True)
class Reached:
    """An address answered, and the device authenticated itself there."""


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
    """The link uses a new connection, in place of any other. ``ours``: it was our call."""

    ours: bool


@dataclass(frozen=True, slots=True)
class WentDown:
    """The link has no connection any more."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Dismissed:
    """This side forgets the device, or ends."""


Event = NetworkChanged | PauseOver | Reached | CallFailed | TheirsFailed | CameUp | WentDown | Dismissed


# --- effects ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TryAddresses:
    """Try its addresses."""


@dataclass(frozen=True, slots=True)
class Greet:
    """Say hello on the connection that was reached."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close the connection that was reached: it is not needed any more."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Send ``PauseOver`` after a pause that grows with ``failures``, at least 1."""

    failures: int


@dataclass(frozen=True, slots=True)
class EndPause:
    pass


@dataclass(frozen=True, slots=True)
class StopDialling:
    pass


@dataclass(frozen=True, slots=True)
class TellDown:
    """Report to the node: calls fail for a reason that a person has to fix."""

    problem: Problem


Effect = TryAddresses | Greet | HangUp | Pause | EndPause | StopDialling | TellDown
