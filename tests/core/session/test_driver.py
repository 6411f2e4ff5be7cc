"""Two threads per side carry a session over socket pairs that break repeatedly."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from core.session import frames
from core.session.driver import SessionDriver
from core.session.frames import PIECE_BYTES, MalformedFrame
from core.session.interface import ConnectionPair
from core.session.state import Bytes, Message, NotSent, SessionLimits
from core.vocabulary.errors import Problem
from tests.core.session.wires import content

BYE = Problem(code="stopped", what="Ben pressed Stop.", fix="Train again.")
NONSENSE = Problem(code="nonsense", what="The peer talks nonsense.")
SIZES = (0, 7, 3000, PIECE_BYTES, 2 * PIECE_BYTES + 11)
LIMIT_S = 60.0
CUTS = 10
LIMITS = SessionLimits()
Sockets = Callable[[], tuple[socket.socket, socket.socket]]


class SocketStream:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._behind = b""
        self._until_s: float | None = None
        self._is_woken = False

    def read_some(self, into: memoryview) -> int:
        if self._is_woken:  # macOS discards what has come
            raise ConnectionError("woken")
        if self._until_s is not None and time.monotonic() >= self._until_s:
            raise TimeoutError("too long")
        if not (got := self._sock.recv_into(into)):
            raise ConnectionError("closed")
        return got

    def write(self, *parts: Bytes) -> None:
        behind, self._behind = self._behind, b""
        for part in (behind, *parts):
            self._sock.sendall(part)

    def write_at_once(self, *parts: Bytes) -> None:
        self._behind += b"".join(parts)
        with contextlib.suppress(BlockingIOError):
            self._behind = self._behind[self._sock.send(self._behind, socket.MSG_DONTWAIT) :]

    @property
    def is_behind(self) -> bool:
        return len(self._behind) > 0

    def limit(self, until_s: float | None) -> None:
        self._until_s = until_s

    def limit_silence(self, each_s: float) -> None:
        self._sock.settimeout(each_s)

    def wake(self) -> None:
        self._is_woken = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self._sock.close()


class Side:
    """Sends the given messages, and records those that arrive."""

    def __init__(self, number: int, sockets: Sockets, limits: SessionLimits = LIMITS) -> None:
        self.number, self._sockets = number, sockets
        self.other: Side | None = None
        self.sent: list[bytes] = []
        self.kept: list[bytes] = []
        self.pieces = 0
        self.reasons: list[Problem] = []
        self.errors: list[Exception] = []
        self.changed = threading.Condition()
        self._room = bytearray()
        self._pairs: list[ConnectionPair] = []
        self._offering: list[threading.Thread] = []
        self.driver = SessionDriver(
            self, f"session-{number}", leads=number == 0, can_call=True, limits=limits
        )

    def put(self, size: int) -> None:
        data = content(self.number, len(self.sent), size)
        self.sent.append(data)
        self.driver.put(Message(b"", size, lambda begin, end: data[begin:end]))
        if size % 2:
            self.driver.push()
        else:
            self.driver.wake()

    def cut(self) -> None:
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.sending.wake()
            pair.receiving.wake()

    def close(self) -> None:
        self.driver.end()
        self.driver.join()
        for thread in self._offering:
            thread.join()

    # Requests from its session.

    def call(self, seen: int) -> ConnectionPair:
        assert self.other
        (to, from_caller), (back, to_caller) = self._sockets(), self._sockets()
        mine = ConnectionPair(SocketStream(to), SocketStream(back))
        theirs = ConnectionPair(SocketStream(to_caller), SocketStream(from_caller))
        thread = threading.Thread(target=self.other.driver.offer, args=(theirs, seen))
        self._pairs.append(mine)
        self._offering = [each for each in self._offering if each.is_alive()] + [thread]
        thread.start()
        return mine

    def connected(self) -> None:
        pass

    def disconnected(self) -> None:
        pass

    def announced(self, about: bytes, size: int, is_live: Callable[[], bool]) -> memoryview | None:
        self._room = bytearray(size)
        return memoryview(self._room)

    def came(self, received: int) -> None:
        with self.changed:
            self.pieces += 1
            self.changed.notify_all()

    def arrived(self) -> None:
        with self.changed:
            self.kept.append(bytes(self._room))
            self.changed.notify_all()

    def left(self, problem: Problem) -> None:
        with self.changed:
            self.reasons.append(problem)
            self.changed.notify_all()

    def given_up(self, error: MalformedFrame | NotSent) -> Problem:
        self.left(NONSENSE)
        return NONSENSE

    def broke(self, error: Exception) -> None:
        self.errors.append(error)

    def wait(self, holds: Callable[[], object]) -> None:
        with self.changed:
            assert self.changed.wait_for(holds, LIMIT_S), "it never came to be"


@contextlib.contextmanager
def joined(
    sockets: Sockets = socket.socketpair, limits: SessionLimits = LIMITS
) -> Iterator[tuple[Side, Side]]:
    one, other = Side(0, sockets, limits), Side(1, sockets, limits)
    one.other, other.other = other, one
    for side in (one, other):
        side.driver.start()
    try:
        yield one, other
    finally:
        for side in (one, other):
            side.close()
    assert not one.errors + other.errors


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("session-")]


def test_messages_arrive_once_and_in_order_over_connections_that_break() -> None:
    with joined() as (one, other):
        for turn in range(CUTS):
            pieces = one.pieces
            for side in (one, other):
                side.put(SIZES[turn % len(SIZES)])
                side.put(SIZES[-1 - side.number])
            one.wait(lambda pieces=pieces: one.pieces > pieces)  # type: ignore[misc]
            one.cut()
            other.cut()
            assert len([name for name in threads() if not name.endswith("-call")]) == 4
        one.wait(lambda: len(one.kept) == len(other.sent))
        other.wait(lambda: len(other.kept) == len(one.sent))
        assert (one.kept, other.kept) == (other.sent, one.sent)
        with one.driver.locked() as machine:
            assert machine.number > CUTS // 2, "most cuts broke a connection that lived"
    assert not threads()


def test_a_goodbye_arrives_after_everything_sent_and_ends_both_sides() -> None:
    with joined() as (one, other):
        for size in SIZES:
            one.put(size)
        one.driver.leave(BYE, LIMIT_S)
        other.wait(lambda: other.reasons)
        assert other.reasons == [BYE]
        assert other.kept == one.sent
        one.driver.wait_over(LIMIT_S)
        with one.driver.locked() as machine:
            assert machine.is_over


def test_a_peer_that_sends_garbage_is_told_so_and_ignored() -> None:
    with joined() as (one, other):
        one.put(1)
        other.wait(lambda: other.kept)
        with one.driver.locked() as machine:
            pair = machine.live
        assert pair
        pair.sending.write(b"\x07\x00\x00\x00\x01x")
        one.wait(lambda: one.reasons)
        assert (one.reasons, other.reasons) == ([NONSENSE], [NONSENSE])


def test_a_bug_of_the_user_is_reported_and_ends_no_thread() -> None:
    with joined() as (one, other):
        raised = [ValueError("a defect")]

        def announced(about: bytes, size: int, is_live: Callable[[], bool]) -> None:
            if raised:
                raise raised.pop()

        other.announced = announced  # type: ignore[method-assign]
        one.put(1)
        one.put(1)
        one.driver.leave(BYE, LIMIT_S)
        other.wait(lambda: other.reasons)
        assert [str(error) for error in other.errors] == ["a defect"]
        other.errors.clear()


@pytest.mark.parametrize("takes", [True, False], ids=["takes and gives nothing", "can't be written to"])
def test_an_unusable_connection_is_replaced(takes: bool) -> None:
    """Even if both threads are busy with the first one, or nothing ends reading from the other."""
    far: list[socket.socket] = []
    called = threading.Semaphore(0)

    class Deaf(Side):
        def call(self, seen: int) -> ConnectionPair:
            (to, from_caller), (back, to_caller) = self._sockets(), self._sockets()
            far.extend([from_caller, to_caller])
            called.release()
            SocketStream(to_caller).write(frames.encode(frames.Begin(session=1 + seen, message=0, bytes=0)))
            if not takes:
                from_caller.close()
            return ConnectionPair(SocketStream(to), SocketStream(back))

    silent_s = 0.3 if takes else LIMIT_S
    side = Deaf(0, socket.socketpair, SessionLimits(alive_s=0.1, silent_s=silent_s))
    side.driver.start()
    try:
        side.put(20 * PIECE_BYTES)
        assert called.acquire(timeout=LIMIT_S)
        assert called.acquire(timeout=5.0), "it hung on the first"
    finally:
        side.close()
        for sock in far:
            sock.close()
    assert not side.errors
