"""Non-members get nothing: wrong keys, other runs, old TLS, plain bytes, and very many of them."""

from __future__ import annotations

import gc
import os
import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from core.exchange import handshake, keys
from core.exchange.acceptor import AT_ONCE_FROM_ONE
from core.exchange.driver import Exchange
from core.exchange.frames import VERSION, MemberHello, PackHead, encode_head
from core.exchange.keys import Keyring
from core.exchange.problems import ExchangeFailed
from core.exchange.reach import HandshakeRefused
from core.exchange.state import LIMITS, Call, Key, Limits, Peer
from core.home.identity import Identity
from core.net import tls
from core.net.strangers import AT_ONCE
from core.net.tls_stream import Sockets, TlsStream
from core.session import frames
from core.session.frames import Begin, MessageHead
from tests.core.exchange.members import DONE, Way, address, identities, keyring, listener, numbers

pytestmark = pytest.mark.real

HELLO = MemberHello(version=VERSION, run="run", rank=1, nonce=b"12345678", carries="from-caller")
JUNK = int(os.environ.get("TANDEM_JUNK_CONNECTIONS", "300"))
"""Number in the test; a longer search sets the variable to, say, 5,000."""


@contextmanager
def member(
    folder: Path, limits: Limits = LIMITS
) -> Iterator[tuple[Exchange, tuple[str, int], list[Identity]]]:
    """Rank 0 of two, its address, and the keys of both. Rank 1 is whoever has its key."""
    of = identities(folder, 2)
    sock = listener()
    at = address(sock)
    exchange = Exchange(0, [Peer(1, None)], keyring(of, 0), "run", sock, limits=limits)
    exchange.start()
    try:
        yield exchange, at, of
    finally:
        exchange.close(DONE)


def refused(at: tuple[str, int], ring: Keyring, hello: MemberHello = HELLO) -> str:
    """Why the caller was not let in."""
    with pytest.raises(OSError) as failure:
        handshake.dial(at, 0, ring, hello, Sockets())
    return str(failure.value)


def test_the_right_key_is_let_in(tmp_path: Path) -> None:
    with member(tmp_path) as (_, at, of):
        connection = handshake.dial(at, 0, keyring(of, 1), HELLO, Sockets())
        assert connection.hello.rank == 0
        assert connection.stream.version == "TLSv1.3"
        connection.stream.sock.close()


def test_a_wrong_key_gets_nothing(tmp_path: Path) -> None:
    with member(tmp_path) as (exchange, at, of):
        stranger = keys.make()
        refused(at, Keyring(stranger, {0: of[0].cert_der}))
        assert [peer.connection for peer in exchange.peers()] == ["dialling"]


def test_a_key_of_another_run_gets_nothing_and_gives_nothing(tmp_path: Path) -> None:
    with member(tmp_path / "one") as (_, at, _of), member(tmp_path / "other") as (_, _, others):
        assert "certificate verify failed" in refused(at, keyring(others, 1))


def test_a_callers_rank_follows_from_its_key_and_not_from_its_claim(tmp_path: Path) -> None:
    of = identities(tmp_path, 3)
    sock = listener()
    exchange = Exchange(0, [Peer(1, None), Peer(2, None)], keyring(of, 0), "run", sock)
    exchange.start()
    try:
        refused(address(sock), keyring(of, 1), msgspec.structs.replace(HELLO, rank=2))
    finally:
        exchange.close(DONE)


def test_a_caller_does_not_speak_to_another_key_than_the_one_it_knows(tmp_path: Path) -> None:
    with member(tmp_path / "false") as (_, at, _):
        of = identities(tmp_path / "true", 2)
        assert "certificate verify failed" in refused(at, keyring(of, 1))


def test_old_tls_gets_nothing(tmp_path: Path) -> None:
    with member(tmp_path) as (_, at, of):
        context = tls.client_context(of[1], of[0].cert_der)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(at) as sock, pytest.raises(ssl.SSLError):
            context.wrap_socket(sock)


def test_no_certificate_gets_nothing(tmp_path: Path) -> None:
    with member(tmp_path) as (_, at, _):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(at) as sock, context.wrap_socket(sock) as connection:
            connection.settimeout(10.0)
            with pytest.raises(OSError):
                connection.send(frames.encode(HELLO))
                if not connection.recv(1):
                    raise ConnectionError("closed")


def test_plain_bytes_get_nothing(tmp_path: Path) -> None:
    with member(tmp_path) as (_, at, _), socket.create_connection(at) as sock:
        sock.settimeout(10.0)
        sock.sendall(frames.encode(HELLO))
        answer = b""
        try:
            while data := sock.recv(4096):
                answer += data
        except ConnectionError:
            pass
        assert len(answer) < 64, "at most an alert of TLS"


def test_a_silent_caller_is_disconnected_after_a_while(tmp_path: Path) -> None:
    limits = Limits(handshake_s=0.3)
    with member(tmp_path, limits) as (_, at, _), socket.create_connection(at) as sock:
        sock.settimeout(10.0)
        began_s = time.monotonic()
        try:
            assert sock.recv(100) == b""
        except ConnectionError:
            pass
        assert 0.2 < time.monotonic() - began_s < 5.0


def test_a_hello_sent_byte_by_byte_gets_no_more_time_than_silence(
    tmp_path: Path,
) -> None:
    with member(tmp_path, Limits(handshake_s=1.0)) as (_, at, of), socket.create_connection(at) as sock:
        stream = TlsStream(sock, keyring(of, 1).client(0), is_server=False)
        began_s = time.monotonic()
        stream.handshake(began_s + 10.0)
        with pytest.raises(OSError):
            for byte in frames.encode(HELLO) * 10:
                stream.write(bytes([byte]))
                time.sleep(0.3)
        assert 0.5 < time.monotonic() - began_s < 5.0


def test_only_a_few_strangers_are_heard_at_once_and_a_member_comes_in_after_them(tmp_path: Path) -> None:
    with member(tmp_path, Limits(handshake_s=2.0)) as (_, at, of):
        silent = [socket.create_connection(at) for _ in range(40)]
        most, deadline_s = 0, time.monotonic() + 20.0
        while True:
            hearing = [each for each in threading.enumerate() if each.name == "exchange-handshake"]
            most = max(most, len(hearing))
            try:
                handshake.dial(at, 0, keyring(of, 1), HELLO, Sockets()).stream.sock.close()
                break
            except OSError:
                assert time.monotonic() < deadline_s
                time.sleep(0.1)
        assert 1 <= most <= AT_ONCE_FROM_ONE
        for sock in silent:
            sock.close()


def session(at: tuple[str, int], of: list[Identity]) -> tuple[TlsStream, TlsStream]:
    """As rank 1 would: sending and receiving connection."""
    nonce = os.urandom(8)
    hellos = [
        msgspec.structs.replace(HELLO, nonce=nonce, carries=carries)
        for carries in ("from-caller", "to-caller")
    ]
    sending, receiving = (handshake.dial(at, 0, keyring(of, 1), hello, Sockets()).stream for hello in hellos)
    return sending, receiving


def say(at: tuple[str, int], of: list[Identity], data: Callable[[Begin], bytes]) -> None:
    """Begins a session like a member, then sends what none would."""
    sending, receiving = session(at, of)
    with closing(sending.sock), closing(receiving.sock):
        begin = frames.read(receiving, frames.WORDS)
        assert isinstance(begin, Begin)
        try:
            sending.write(frames.encode(Begin(session=begin.session, message=0, bytes=0)) + data(begin))
            receiving.limit(time.monotonic() + 10.0)
            nowhere = memoryview(bytearray(4096))
            while receiving.read_some(nowhere):
                pass
        except OSError:
            pass


def test_a_member_that_announces_endless_empty_packs_waits_when_there_is_no_room(tmp_path: Path) -> None:
    call = Call("sum", "float32", (0,))

    def nothings(_: Begin) -> bytes:
        heads = (
            MessageHead(number, 0, 0, encode_head(PackHead(Key(0, 0, 9, number), "part", call)))
            for number in range(200)
        )
        return b"".join(map(frames.encode, heads))

    with member(tmp_path, Limits(early_meetings=50)) as (exchange, at, of):
        caller = threading.Thread(target=say, args=(at, of, nothings))
        caller.start()
        until_s = time.monotonic() + 10.0
        while len(exchange._packs) < 50:
            assert time.monotonic() < until_s
            time.sleep(0.01)
        time.sleep(0.5)
        assert len(exchange._packs) == 50
        exchange.close(DONE)
        caller.join()


def test_a_member_that_calls_without_end_gets_few_threads(tmp_path: Path) -> None:
    """Rank 1 calls rank 2, which waits on each pair of connections for a beginning that never comes."""
    of = identities(tmp_path, 3)
    sock = listener()
    exchange = Exchange(2, [Peer(0, None), Peer(1, None)], keyring(of, 2), "run", sock)
    exchange.start()
    ring, open_sockets = keyring(of, 1), []
    try:
        for _ in range(20):
            nonce = os.urandom(8)
            for carries in ("from-caller", "to-caller"):
                hello = msgspec.structs.replace(HELLO, nonce=nonce, carries=carries)
                try:
                    connection = handshake.dial(address(sock), 2, ring, hello, Sockets(), 2.0)
                except OSError:
                    continue
                open_sockets.append(connection.stream.sock)
        names = [thread.name for thread in threading.enumerate()]
        assert 4 <= names.count("exchange-handshake") <= AT_ONCE_FROM_ONE
    finally:
        exchange.close(DONE)
        for each in open_sockets:
            each.close()


@pytest.mark.parametrize("known", ["by its address", "since it called", ""])
def test_strangers_that_take_every_place_leave_those_of_members(tmp_path: Path, known: str) -> None:
    of = identities(tmp_path, 2)
    at = address(sock := listener())
    peer = Peer(1, ("127.0.0.1", 9) if known == "by its address" else None)
    exchange = Exchange(0, [peer], keyring(of, 0), "run", sock)
    exchange.start()
    with ExitStack() as stack:
        stack.callback(exchange.close, DONE)
        if known == "since it called":
            handshake.dial(at, 0, keyring(of, 1), HELLO, Sockets()).stream.sock.close()
        for number in range(AT_ONCE):
            host = f"127.0.0.{2 + number % 2}"
            stack.enter_context(socket.create_connection(at, source_address=(host, 0)))
        beyond = stack.enter_context(socket.create_connection(at, source_address=("127.0.0.4", 0)))
        beyond.settimeout(10)
        assert beyond.recv(1) == b"", "no place is left for a stranger"
        if known:
            handshake.dial(at, 0, keyring(of, 1), HELLO, Sockets()).stream.sock.close()
        else:
            refused(at, keyring(of, 1))


def test_a_member_that_was_started_anew_is_found(tmp_path: Path) -> None:
    with member(tmp_path) as (exchange, at, of):
        way = Way(at)
        first = Exchange(1, [Peer(0, way.address)], keyring(of, 1), "run", None)
        first.start()
        for each in (exchange, first):
            each.hand_over(Key(0, 0, 0, 0), numbers(each.rank, 10))
        first.wait([Key(0, 0, 0, 0)])
        exchange.wait([Key(0, 0, 0, 0)])
        deadline_s = time.monotonic() + 10
        while not exchange.is_idle:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        # Equivalent to a kill: no goodbye arrives, and nothing is remembered.
        way.close()
        second = Exchange(1, [Peer(0, at)], keyring(of, 1), "run", None)
        second.start()
        exchange.hand_over(Key(0, 0, 1, 0), numbers(0, 10))
        with pytest.raises(ExchangeFailed) as failure:
            exchange.wait([Key(0, 0, 1, 0)])
        assert "restarted" in failure.value.what
        first.close(DONE)
        second.close(DONE)


def test_hundreds_of_junk_connections_leave_no_thread_no_socket_and_no_memory(tmp_path: Path) -> None:
    source = random.Random(3)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    process = psutil.Process()
    with member(tmp_path) as (exchange, at, of):
        stranger = Keyring(keys.make(), {0: of[0].cert_der})

        def junk(number: int) -> None:
            if number % 10 == 0:
                try:
                    handshake.dial(at, 0, stranger, HELLO, Sockets())
                except OSError:
                    return
                raise HandshakeRefused("a stranger was let in")
            with socket.create_connection(at, timeout=10.0) as sock:
                try:
                    sock.sendall((hello if number % 2 else b"") + source.randbytes(source.randint(0, 2000)))
                    if number % 3 == 0:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    elif number % 3 == 1:
                        sock.shutdown(socket.SHUT_WR)
                        while sock.recv(4096):
                            pass
                except OSError:
                    pass

        def settled() -> tuple[int, int]:
            deadline_s = time.monotonic() + 20
            # The remaining one is the listener.
            while len(exchange._sockets._open) > 1 or any(
                thread.name == "exchange-handshake" for thread in threading.enumerate()
            ):
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            gc.collect()
            return process.num_fds(), process.memory_info().rss

        for number in range(100):
            junk(number)
        before = settled()
        for number in range(JUNK):
            junk(number)
        after = settled()
        assert after[0] <= before[0] + 2
        assert after[1] - before[1] < 10 * 2**20

        # A member can still connect.
        other = Exchange(1, [Peer(0, at)], keyring(of, 1), "run", None)
        other.start()
        for each in (exchange, other):
            each.hand_over(Key(0, 0, 0, 0), numbers(each.rank, 10))
        assert other.wait([Key(0, 0, 0, 0)])[0].tobytes() == exchange.wait([Key(0, 0, 0, 0)])[0].tobytes()
        other.close(DONE)
