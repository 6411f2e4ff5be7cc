"""Data that a session's machine and its drivers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

Bytes = bytes | bytearray | memoryview


class NotSent(ValueError):
    """The peer requests or confirms messages that were never sent, or that it had already confirmed."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """When to confirm, and when to try another connection. A slow peer is never given up."""

    alive_s: float = 1.0
    silent_s: float = 10.0
    """After this silence another connection is dialled beside the present one."""
    worn_bytes: int = 2**38
    """AES-GCM must not encrypt more than 2^24.5 records of 16 KiB with a key (RFC 8446, 5.5)."""
    ack_bytes: int = 2**38
    """A confirmation is sent once this much has arrived."""
    rest_s: float = 0.02
    """How long the receiving thread rests, for a waiting thread to read instead (``turns``)."""


@dataclass(frozen=True, slots=True)
class Message:
    """``about`` describes it to the receiver; ``size`` bytes follow.

    ``piece``: returns the bytes from one index up to another; called each time they are sent. ``key``: chosen
    by the sender, to drop messages below a floor.
    """

    about: bytes
    size: int = 0
    piece: Callable[[int, int], Bytes] = lambda begin, end: b""
    key: tuple[int, ...] = ()


class Piece(NamedTuple):
    """A part of message ``number``. An empty message has one empty piece."""

    number: int
    message: Message
    begin: int
    end: int
    needs_head: bool

    @property
    def data(self) -> Bytes:
        return self.message.piece(self.begin, self.end)


class Output(NamedTuple):
    """The next bytes to write: whole frames, and then the bytes of ``piece``, if any."""

    frames: bytes
    piece: Piece | None = None

    @property
    def parts(self) -> tuple[Bytes, ...]:
        if self.piece and self.piece.end > self.piece.begin:
            return self.frames, self.piece.data
        return (self.frames,)
