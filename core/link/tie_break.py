"""Which of several connections to a device is the link: the newest authenticated one, same on both sides.

Clocks differ between laptops, and so does the order in which crossing calls are seen. So one of the two, the
one with the lower device id, numbers the connections, and both only ever move to a higher number. The numbers
travel in ``Hello.nonce``: this run of the pairing (8 random bytes), the numbering side's (8), number (u64).

The numbering side turns a call away only when it crossed its own: when the caller's nonce shows that it did
not yet know of a connection on which the numbering side had said hello before. Any other call means that the
caller lost what it had, and the new connection wins. Pure; one for each peer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

from core.vocabulary.ids import DeviceId

RUN_BYTES = 8
_NONCE = struct.Struct(">8s8sQ")


class BadNonce(ValueError):
    """A hello whose nonce no node of this protocol writes."""


class TieBreak(Protocol):
    """What the two sides of a tie break have in common."""

    def call(self) -> bytes:
        """The nonce for our hello on a connection that we opened. One call at a time."""
        ...

    def gave_up(self) -> None:
        """Our call ended without an answer."""
        ...

    def judge_answer(self, theirs: bytes) -> bool:
        """Our call was answered: does it become the link, in place of any other? Raises ``BadNonce``."""
        ...

    def judge_call(self, theirs: bytes) -> bytes | None:
        """The peer called: the nonce to answer with, or None to turn it away. Raises ``BadNonce``."""
        ...

    def lost(self) -> None:
        """The link is down."""
        ...


def tie_break(own: DeviceId, peer: DeviceId, run: bytes) -> TieBreak:
    """``run``: eight random bytes, new with each call."""
    return Numbering(run) if own < peer else Following(run)


@dataclass(frozen=True, slots=True)
class _Nonce:
    run: bytes
    numbering_run: bytes
    number: int

    @classmethod
    def read(cls, nonce: bytes) -> _Nonce:
        if len(nonce) != _NONCE.size:
            raise BadNonce(f"{len(nonce)} bytes where {_NONCE.size} belong")
        return cls(*_NONCE.unpack(nonce))

    def written(self) -> bytes:
        return _NONCE.pack(self.run, self.numbering_run, self.number)


class Numbering:
    """The side with the lower device id."""

    def __init__(self, run: bytes) -> None:
        self._run = run
        self._given = 0
        self._called: int | None = None
        """The number of our call that waits for its answer."""
        self._taken = 0
        """The highest number that became the link."""
        self._link_by_our_call = False
        """The link with number ``_taken`` stands, and we had called."""
        self._peer_run = b""

    def call(self) -> bytes:
        self._called = self._next()
        return self._nonce(self._called)

    def gave_up(self) -> None:
        self._called = None

    def judge_answer(self, theirs: bytes) -> bool:
        nonce = _Nonce.read(theirs)
        number, self._called = self._called, None
        if number is None or number < self._taken:
            return False
        self._taken, self._peer_run, self._link_by_our_call = number, nonce.run, True
        return True

    def judge_call(self, theirs: bytes) -> bytes | None:
        nonce = _Nonce.read(theirs)
        known = nonce.number if nonce.numbering_run == self._run else 0
        if self._called is not None and known < self._called:
            return None
        if self._link_by_our_call and nonce.run == self._peer_run and known < self._taken:
            return None
        self._taken, self._peer_run, self._link_by_our_call = self._next(), nonce.run, False
        return self._nonce(self._taken)

    def lost(self) -> None:
        self._link_by_our_call = False

    def _next(self) -> int:
        self._given += 1
        return self._given

    def _nonce(self, number: int) -> bytes:
        return _Nonce(self._run, self._run, number).written()


class Following:
    """The side with the higher device id: takes whatever has a higher number than what it took before."""

    def __init__(self, run: bytes) -> None:
        self._run = run
        self._numbering_run, self._taken = bytes(RUN_BYTES), 0

    def call(self) -> bytes:
        return self._nonce()

    def gave_up(self) -> None:
        pass

    def judge_answer(self, theirs: bytes) -> bool:
        nonce = _Nonce.read(theirs)
        # Another run of the numbering side begins another order: what its last run numbered is dead.
        if nonce.numbering_run == self._numbering_run and nonce.number <= self._taken:
            return False
        self._numbering_run, self._taken = nonce.numbering_run, nonce.number
        return True

    def judge_call(self, theirs: bytes) -> bytes | None:
        return self._nonce() if self.judge_answer(theirs) else None

    def lost(self) -> None:
        pass

    def _nonce(self) -> bytes:
        return _Nonce(self._run, self._numbering_run, self._taken).written()
