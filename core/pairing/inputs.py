"""What can happen to a pairing. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from core.pairing.phases import Connection, Target
from core.vocabulary.errors import Problem


@dataclass(frozen=True, slots=True)
class Started:
    """Our user clicked Pair. ``sid`` and ``nonce`` are fresh from the system's generator."""

    target: Target
    sid: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True)
class Dialled:
    connection: Connection


@dataclass(frozen=True, slots=True)
class DialFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class StrangerSpoke:
    """The first frame of a connection that came in. ``nonce`` is fresh, used if this becomes a session."""

    connection: Connection
    host: str
    body: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True)
class FrameCame:
    """A later frame of any connection."""

    connection: Connection
    body: bytes


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A connection closed, broke, or sent what is no frame (``problem``)."""

    connection: Connection
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """Our user compared the codes."""

    same: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Our user gave up."""


@dataclass(frozen=True, slots=True)
class Proved:
    """PAIR_OK went out and an equal one came in, over mutual TLS. ``port``: where the peer listens."""

    port: int


@dataclass(frozen=True, slots=True)
class ProofFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A deadline may be over."""


Input = (
    Started
    | Dialled
    | DialFailed
    | StrangerSpoke
    | FrameCame
    | ConnectionLost
    | Answered
    | Cancelled
    | Proved
    | ProofFailed
    | TimePassed
)
