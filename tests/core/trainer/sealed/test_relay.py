"""TensorFlow's connections through two relays, with real sockets on one machine."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.trainer.sealed.relay import Relay
from core.vocabulary.trainer_messages import Seal
from tests.core.trainer.attended import free_ports, keys_for

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.name != "posix", reason="relays are Linux's")]

LIMIT_S = 60.0
ENOUGH = 6_000_000
"""Bytes: more than all buffers on the way hold, and not a multiple of the piece size."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Two relays. On each side the loopback stands for a trainer's network."""

    relays: tuple[Relay, Relay]
    called: tuple[str, int]
    """The address where the first one's trainer calls the second's."""
    listener: socket.socket
    """The second's, in place of TensorFlow's server."""

    @contextmanager
    def connection(self) -> Iterator[tuple[socket.socket, socket.socket]]:
        """The caller's end and the answerer's."""
        with socket.create_connection(self.called, LIMIT_S) as caller:
            answerer, _ = self.listener.accept()
            with answerer:
                for end in (caller, answerer):
                    end.settimeout(LIMIT_S)
                yield caller, answerer


@pytest.fixture
def joined() -> Iterator[Joined]:
    ports = free_ports(2)
    outside = tuple(f"127.0.0.1:{port}" for port in ports)
    # Separate addresses for each: here both sides share one loopback.
    insides = [tuple(f"127.77.{side}.{rank}:{ports[rank]}" for rank in (0, 1)) for side in (8, 9)]
    relays = []
    for rank, (keys, inside) in enumerate(zip(keys_for(2), insides, strict=True)):
        seal = Seal(keys=keys, outside=outside, inside=inside, downloads=False)
        relays.append(Relay("relayed", rank, seal, socket.socket, lambda: None))
    with ExitStack() as ends:
        for relay in relays:
            relay.start()
            ends.callback(relay.close)
        listener = ends.enter_context(socket.create_server((f"127.77.9.{1}", ports[1])))
        listener.settimeout(LIMIT_S)
        yield Joined((relays[0], relays[1]), ("127.77.8.1", ports[1]), listener)


def until(happened: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + LIMIT_S
    while not happened():
        assert time.monotonic() < until_s, what
        time.sleep(0.01)


def everything(sock: socket.socket) -> bytes:
    """Reads until the other end closes."""
    came = bytearray()
    while got := sock.recv(1 << 16):
        came += got
    return bytes(came)


def is_over(sock: socket.socket) -> bool:
    """Its other end is gone: nothing arrives any more, and nothing can be sent."""
    try:
        while sock.recv(1 << 16):
            pass
        for _ in range(200):
            sock.sendall(b"to nobody")
            time.sleep(0.01)
    except ConnectionError:
        return True
    return False


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_data_sent_both_ways_at_once_arrives_whole_and_in_order(joined: Joined) -> None:
    said = [random.Random(seed).randbytes(ENOUGH + seed) for seed in (1, 2)]
    came: dict[int, bytes] = {}
    with joined.connection() as ends:

        def say(number: int) -> None:
            ends[number].sendall(said[number])
            ends[number].shutdown(socket.SHUT_WR)

        def hear(number: int) -> None:
            came[number] = everything(ends[number])

        threads = [threading.Thread(target=work, args=(n,)) for work in (say, hear) for n in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
    assert [digest(came[0]), digest(came[1])] == [digest(said[1]), digest(said[0])]


@pytest.mark.parametrize("first", ["caller", "answerer"])
def test_an_end_in_one_direction_leaves_the_other_one_open(joined: Joined, first: str) -> None:
    with joined.connection() as (caller, answerer):
        ends, stays = (caller, answerer) if first == "caller" else (answerer, caller)
        ends.sendall(b"the last word")
        ends.shutdown(socket.SHUT_WR)
        assert everything(stays) == b"the last word"
        # The other direction stays open, for much more than buffers hold.
        answer = random.Random(3).randbytes(ENOUGH)

        def say() -> None:
            stays.sendall(answer)
            stays.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=say)
        sending.start()
        assert digest(everything(ends)) == digest(answer)
        sending.join(LIMIT_S)


@pytest.mark.parametrize("who", ["caller", "answerer"])
def test_a_reset_at_one_end_ends_the_connection_at_the_other(joined: Joined, who: str) -> None:
    with joined.connection() as (caller, answerer):
        caller.sendall(b"a")
        assert answerer.recv(1) == b"a"
        resets, other = (caller, answerer) if who == "caller" else (answerer, caller)
        resets.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        resets.close()
        assert is_over(other)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_relay_that_ends_takes_its_connections_with_it(joined: Joined, rank: int) -> None:
    with joined.connection() as (caller, answerer):
        caller.sendall(b"a")
        assert answerer.recv(1) == b"a"
        joined.relays[rank].close()
        assert is_over(caller) and is_over(answerer)


@pytest.mark.parametrize("direction", ["sending", "receiving"])
def test_a_cut_in_either_of_the_two_connections_that_carry_one_ends_it(
    joined: Joined, direction: str
) -> None:
    """A killed system, or a network that gave up on it."""
    with joined.connection() as (caller, answerer):
        caller.sendall(b"a")
        assert answerer.recv(1) == b"a"
        carried = [sock for sock in tls_of(joined.relays[0], joined.called) if sock.fileno() >= 0]
        assert len(carried) == 2
        chosen = carried[0] if direction == "sending" else carried[1]
        chosen.shutdown(socket.SHUT_RDWR)
        assert is_over(caller) and is_over(answerer)


def tls_of(relay: Relay, called: tuple[str, int]) -> list[socket.socket]:
    """The relay's outgoing connections, in order: to send, and to receive."""
    found = []
    for sock in relay._sockets._open:
        try:
            name, peer = sock.getsockname(), sock.getpeername()
        except OSError:  # a listener
            continue
        if peer[0] == "127.0.0.1" and called[0] not in (name[0], peer[0]):
            found.append(sock)
    return sorted(found, key=socket.socket.fileno)


def test_nothing_is_left_of_connections_that_ended(joined: Joined) -> None:
    def open_now() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def carrying() -> list[str]:
        names = ("relay-call", "relay-answer", "relay-out", "relay-in")
        return [thread.name for thread in threading.enumerate() if thread.name in names]

    with joined.connection() as (caller, answerer):
        caller.sendall(b"a")
        assert answerer.recv(1) == b"a"
        four = ["relay-in", "relay-in", "relay-out", "relay-out"]
        until(lambda: sorted(carrying()) == four, "nobody carries but these")
    until(lambda: not carrying(), "threads that carried ended")
    before = open_now()
    for number in range(12):
        with joined.connection() as (caller, answerer):
            caller.sendall(b"a")
            assert answerer.recv(1) == b"a"
            assert open_now() >= before + 8, "two ends, and on each side the plain one and two of TLS"
            if number % 3 == 0:
                caller.shutdown(socket.SHUT_WR)
            elif number % 3 == 1:
                answerer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: not carrying(), "threads that carried ended")
    until(lambda: open_now() == before, "descriptors were closed")
