"""One link: its states with the data of each, what can happen to it, what is asked for. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from core.vocabulary.errors import Problem
from core.vocabulary.peer_messages import Hello, Message


@dataclass(frozen=True, slots=True)
class Sleep:
    """This laptop slept, or this process stood still, for ``seconds`` until ``until_s``."""

    until_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Opening:
    """We dialled and said hello; the other side has yet to."""

    mine: Hello
    name: str
    """What the peer is called in sentences."""
    heard_s: float
    ticked_s: float
    sleep: Sleep | None = None


@dataclass(frozen=True, slots=True)
class Up:
    """Both said hello."""

    name: str
    heard_s: float
    ticked_s: float
    sleep: Sleep | None = None


@dataclass(frozen=True, slots=True)
class Over:
    problem: Problem


State = Opening | Up | Over


# --- what can happen to it --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    message: Message


@dataclass(frozen=True, slots=True)
class Ticked:
    """``HEARTBEAT_S`` passed since the last tick, or more where this laptop slept."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """This side wants to end the link."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection closed, or what came over it can't be read."""

    problem: Problem


Event = Received | Ticked | Leaving | Broken


# --- what it asks its driver to do ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    message: Message


@dataclass(frozen=True, slots=True)
class CameUp:
    """Both said hello and speak the same protocol; other versions may still differ."""

    hello: Hello


@dataclass(frozen=True, slots=True)
class Deliver:
    message: Message


@dataclass(frozen=True, slots=True)
class End:
    """Close the connection, after what was to be sent went out."""

    problem: Problem


Effect = Send | CameUp | Deliver | End
