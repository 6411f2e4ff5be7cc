"""What the pairing machine asks its driver to do. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from core.net.address import Address
from core.pairing.events import Event
from core.pairing.messages import NoteWord
from core.pairing.phases import Connection, Peer


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a plain connection."""

    address: Address


@dataclass(frozen=True, slots=True)
class Send:
    connection: Connection
    body: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Close after what was sent has gone out."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class Refuse:
    """Tell a stranger why not, and close. Only the log hears of it."""

    connection: Connection
    note: NoteWord
    why: str


@dataclass(frozen=True, slots=True)
class Prove:
    """Open mutual TLS to ``address`` with ``peer`` as the only pin, and exchange PAIR_OK."""

    peer: Peer
    address: Address
    proof: bytes


@dataclass(frozen=True, slots=True)
class Tell:
    """Something for the person."""

    event: Event


Effect = Dial | Send | Close | Refuse | Prove | Tell
