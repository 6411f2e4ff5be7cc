"""Chooses which of several connections to a device carries its link: the newest authenticated one, on both
sides.

Clocks differ between laptops, and crossing calls are seen in different orders. So one side, the one with the
lower device id, numbers the connections, and both only ever move to a higher number. The numbers travel in
``Hello.nonce``: the sender's incarnation (8 bytes, drawn at random for each session), the numbering side's as
far as the sender knows it (8), and the number (u64).

The numbering side turns a call away only when it crossed its own: when the caller's nonce shows that it did
not yet know of a connection on which the numbering side had already said hello. Any other call means that the
caller lost its connection, and the new one wins. Pure; one instance for each session with a peer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from core.vocabulary.ids import DeviceId

INCARNATION_BYTES = 8
_NONCE = struct.Struct(">8s8sQ")


class BadNonce(ValueError):
    """The nonce of a hello is malformed."""


def incarnation_of(nonce: bytes) -> bytes:
    """The incarnation of the side that sent a nonce. Raises ``BadNonce``."""
    return _Nonce.read(nonce).incarnation


@dataclass(frozen=True, slots=True)
class _Nonce:
    incarnation: bytes
    numbering_incarnation: bytes
    number: int

    @classmethod
    def read(cls, nonce: bytes) -> _Nonce:
        if len(nonce) != _NONCE.size:
            raise BadNonce(f"{len(nonce)} bytes instead of {_NONCE.size}")
        return cls(*_NONCE.unpack(nonce))

    def written(self) -> bytes:
        return _NONCE.pack(self.incarnation, self.numbering_incarnation, self.number)


class Numbering:
    """The side with the lower device id."""

    def __init__(self, incarnation: bytes) -> None:
        self.incarnation = incarnation
        self._given = 0
        self._called: int | None = None
        """The number of our call that waits for its answer."""
        self._taken = 0
        """The highest number that became the link."""
        self._link_by_our_call = False
        """The link with number ``_taken`` is up, and we had called."""
        self._peer_incarnation = b""

    def call(self) -> bytes:
        """The nonce for our hello on a connection that we opened. One call at a time."""
        self._called = self._next()
        return self._nonce(self._called)

    def gave_up(self) -> None:
        """Our call ended without an answer."""
        self._called = None

    def judge_answer(self, theirs: bytes) -> bool:
        """Our call was answered: whether it becomes the link, in place of any other. Raises ``BadNonce``."""
        nonce = _Nonce.read(theirs)
        number, self._called = self._called, None
        if number is None or number < self._taken:
            return False
        self._taken, self._peer_incarnation, self._link_by_our_call = number, nonce.incarnation, True
        return True

    def judge_call(self, theirs: bytes) -> bytes | None:
        """The peer called: the nonce to answer with, or None to turn it away. Raises ``BadNonce``."""
        nonce = _Nonce.read(theirs)
        known = nonce.number if nonce.numbering_incarnation == self.incarnation else 0
        if self._called is not None and known < self._called:
            return None
        if self._link_by_our_call and nonce.incarnation == self._peer_incarnation and known < self._taken:
            return None
        self._taken, self._peer_incarnation, self._link_by_our_call = self._next(), nonce.incarnation, False
        return self._nonce(self._taken)

    def lost(self) -> None:
        """The link is down."""
        self._link_by_our_call = False

    def _next(self) -> int:
        self._given += 1
        return self._given

    def _nonce(self, number: int) -> bytes:
        return _Nonce(self.incarnation, self.incarnation, number).written()


class Following:
    """The side with the higher device id: accepts any number higher than its last one."""

    def __init__(self, incarnation: bytes) -> None:
        self.incarnation = incarnation
        self._numbering_incarnation, self._taken = bytes(INCARNATION_BYTES), 0

    def call(self) -> bytes:
        return self._nonce()

    def gave_up(self) -> None:
        pass

    def judge_answer(self, theirs: bytes) -> bool:
        nonce = _Nonce.read(theirs)
        # A new incarnation of the numbering side numbers anew: its earlier numbers are void.
        if nonce.numbering_incarnation == self._numbering_incarnation and nonce.number <= self._taken:
            return False
        self._numbering_incarnation, self._taken = nonce.numbering_incarnation, nonce.number
        return True

    def judge_call(self, theirs: bytes) -> bytes | None:
        return self._nonce() if self.judge_answer(theirs) else None

    def lost(self) -> None:
        pass

    def _nonce(self) -> bytes:
        return _Nonce(self.incarnation, self._numbering_incarnation, self._taken).written()


TieBreak = Numbering | Following


def tie_break(own: DeviceId, peer: DeviceId, incarnation: bytes) -> TieBreak:
    """``incarnation``: eight random bytes, new with each session."""
    return Numbering(incarnation) if own < peer else Following(incarnation)
