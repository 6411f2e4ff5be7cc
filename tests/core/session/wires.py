"""Two ends of a session over wires in memory that can be cut after any byte. No socket, clock or thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.session import frames
from core.session.frames import HEADER, Begin, Goodbye, MessageHead
from core.session.machine import Session
from core.session.state import Message, SessionLimits
from core.vocabulary.errors import Problem

SECONDS_A_TURN = 0.1


def content(side: int, number: int, size: int) -> bytes:
    """Every message differs from its neighbours, and every piece from the next."""
    pattern = bytes((side * 97 + number * 31 + at * 7) % 251 for at in range(241))
    return (pattern * (size // len(pattern) + 1))[:size]


@dataclass(eq=False)
class Wire:
    """A connection. By side: ``coming``, bytes under way to it; ``here``, bytes that arrived."""

    seen: int
    caller: int
    coming: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    here: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    is_cut: bool = False
    passed: int = 0


class Side:
    """Acts as a session's driver."""

    def __init__(self, side: int, limits: SessionLimits, can_call: bool) -> None:
        self.side = side
        self.session = Session[Wire](leads=side == 0, can_call=can_call, limits=limits, now_s=0.0)
        self.sent: list[bytes] = []
        self.arrived: list[bytes] = []
        self.reasons: list[Problem] = []
        self.served: list[Wire] = []
        """Every wire that became the live one."""
        self._coming: bytearray | None = None
        self._unbegun: list[Wire] = []

    def put(self, size: int) -> None:
        data = content(self.side, len(self.sent), size)
        self.session.put(Message(b"%d" % len(self.sent), size, lambda begin, end: data[begin:end]))
        self.sent.append(data)

    def met(self, wire: Wire, now_s: float) -> None:
        """A new wire: its other end is connected, too."""
        if self.session.leads:
            self._offer(wire, now_s, None)
        else:
            self._unbegun.append(wire)

    def _offer(self, wire: Wire, now_s: float, begin: Begin | None) -> None:
        before = self.session.live
        seen = None if wire.caller == self.side else wire.seen
        if not self.session.offer(wire, now_s, seen=seen, begin=begin):
            wire.is_cut = True
            return
        if before:
            before.is_cut = True
        self.served.append(wire)
        self.session.ready()

    def write(self, now_s: float) -> None:
        """Sends everything due."""
        live = self.session.live
        while live and (output := self.session.next(now_s)):
            data = output.frames + bytes(output.piece.data if output.piece else b"")
            live.coming[1 - self.side].extend(data)
            live.passed += len(data)

    def read(self, now_s: float) -> None:
        """Reads all complete frames that arrived; notices broken wires."""
        for wire in [wire for wire in self._unbegun if not wire.is_cut]:
            if frame := _taken(wire.here[self.side]):
                self._unbegun.remove(wire)
                word = frames.decode(frame, frames.WORDS)
                assert isinstance(word, Begin)
                self._offer(wire, now_s, word)
        live = self.session.live
        while live and live is self.session.live and not live.is_cut:
            frame = _taken(live.here[self.side])
            if frame is None:
                break
            self._receive(frame, live.here[self.side])
        if live and live.is_cut:
            self.session.lost(live)

    def _receive(self, frame: bytes, rest: bytearray) -> None:
        if frame[:1] == b"P":
            length = len(frame) - 1
            begin = self.session.piece(length)
            assert self._coming is not None
            assert begin == len(self._coming), "what came was sent again"
            self._coming += frame[1:]
            if self.session.came(length):
                self._finish()
            return
        match self.session.receive(frames.decode(frame, frames.WORDS)):
            case MessageHead() as head:
                assert head.about == b"%d" % len(self.arrived)
                self._coming = bytearray()
                if self.session.begin(head):
                    self._finish()
            case Goodbye() as goodbye:
                self.reasons.append(goodbye.problem)
                if self.session.live:
                    self.session.live.is_cut = True
                self.session.end()

    def _finish(self) -> None:
        assert self._coming is not None
        self.arrived.append(bytes(self._coming))
        self._coming = None


def _taken(data: bytearray) -> bytes | None:
    """The next complete frame: a word's body, or a piece with ``P`` before it."""
    if len(data) < HEADER.size:
        return None
    kind, length = frames.read_header(data[: HEADER.size])
    end = HEADER.size + length
    if len(data) < end:
        return None
    body = bytes(data[HEADER.size : end])
    del data[:end]
    return b"P" + body if kind == frames.PIECE else body


class World:
    """Both sides, and the wires between them. Bytes move when ``carry`` is called."""

    def __init__(
        self, limits: SessionLimits | None = None, can_call: tuple[bool, bool] = (True, True)
    ) -> None:
        self.now_s = 0.0
        self.sides = [Side(side, limits or SessionLimits(), can_call[side]) for side in (0, 1)]
        self.wires: list[Wire] = []
        self._dialled: list[Wire] = []

    def call(self, side: int) -> None:
        """Calls if due; the call arrives with ``connect``."""
        session = self.sides[side].session
        if session.call_is_due(self.now_s):
            wire = Wire(session.call(), side)
            self.wires.append(wire)
            self._dialled.append(wire)

    def connect(self) -> None:
        """The oldest call arrives, or fails if the other side is over."""
        if not self._dialled:
            return
        wire = self._dialled.pop(0)
        if self.sides[1 - wire.caller].session.is_over:
            wire.is_cut = True
        else:
            for side in self.sides:
                side.met(wire, self.now_s)
        self.sides[wire.caller].session.call_ended(self.now_s)

    def carry(self, to: int, most: int) -> None:
        """Up to ``most`` bytes on each wire arrive at one side."""
        for wire in self.wires:
            if not wire.is_cut and wire.coming[to]:
                wire.here[to].extend(wire.coming[to][:most])
                del wire.coming[to][:most]
                if wire is self.sides[to].session.live:
                    self.sides[to].session.heard_s = self.now_s
        self.sides[to].read(self.now_s)

    def cut(self) -> None:
        for wire in self.wires:
            wire.is_cut = True

    def turn(self) -> None:
        """A little time passes, and everything possible happens."""
        self.now_s += SECONDS_A_TURN
        for side in (0, 1):
            self.call(side)
        while self._dialled:
            self.connect()
        for side in (0, 1):
            self.sides[side].write(self.now_s)
        for side in (0, 1):
            self.carry(side, 2**30)

    def turn_until(self, holds: Callable[[], object], turns: int = 600) -> None:
        for _ in range(turns):
            if holds():
                return
            self.turn()
        raise AssertionError(f"not within {turns} turns")
