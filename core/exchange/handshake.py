"""From a TCP connection to one that a member of this run has proved to be at the other end of. Blocks.

Each step has a time limit. Nothing of the exchange is said before TLS has checked the certificate.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from dataclasses import dataclass

from core.exchange import frames
from core.exchange.frames import MalformedFrame, MemberHello
from core.exchange.keys import Keyring
from core.exchange.reach import HandshakeRefused, resolve
from core.exchange.state import LIMITS, Address
from core.exchange.tls_stream import TlsStream

CONNECT_S = 5.0


class Sockets:
    """Those that are open, so that closing wakes whoever waits on one. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = threading.Event()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def wait_closed(self, limit_s: float) -> bool:
        return self._closed.wait(limit_s)

    def add(self, sock: socket.socket) -> None:
        """Raises ``ConnectionError`` after ``close``; the socket is closed then."""
        with self._lock:
            if not self._closed.is_set():
                self._open.add(sock)
                return
        sock.close()
        raise ConnectionError("the exchange is closed")

    def end(self, sock: socket.socket) -> None:
        """By the thread that uses it."""
        with self._lock:
            self._open.discard(sock)
        sock.close()

    def close(self) -> None:
        with self._lock:
            self._closed.set()
            still_open = list(self._open)
        for sock in still_open:
            wake(sock)


def wake(sock: socket.socket) -> None:
    """End whatever another thread does on it; that thread closes it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class MemberConnection:
    """A connection whose other end is a member."""

    stream: TlsStream
    rank: int
    hello: MemberHello


def accept(
    sock: socket.socket,
    keyring: Keyring,
    mine: MemberHello,
    sockets: Sockets,
    handshake_s: float = LIMITS.handshake_s,
) -> MemberConnection:
    """Raises ``OSError``; the socket is closed then. ``mine`` tells version, run, and rank."""
    until_s = time.monotonic() + handshake_s
    try:
        stream = _secured(sock, keyring.server, True, until_s)
        rank = keyring.rank_of(stream.peer_der)
        if rank is None:
            raise HandshakeRefused("a certificate that is not pinned")
        theirs = _hello(stream)
        _check(theirs, mine, rank)
        answer = MemberHello(
            version=mine.version, run=mine.run, rank=mine.rank, nonce=theirs.nonce, carries=theirs.carries
        )
        stream.write(frames.encode(answer))
        stream.limit(None)
    except BaseException:
        sockets.end(sock)
        raise
    return MemberConnection(stream, rank, theirs)


def dial(
    address: Address,
    rank: int,
    keyring: Keyring,
    mine: MemberHello,
    sockets: Sockets,
    handshake_s: float = LIMITS.handshake_s,
) -> MemberConnection:
    """Raises ``OSError``."""
    family, kind, protocol, _, full_address = resolve(address, CONNECT_S)
    sock = socket.socket(family, kind, protocol)
    sockets.add(sock)
    try:
        sock.settimeout(CONNECT_S)
        sock.connect(full_address)
        until_s = time.monotonic() + handshake_s
        stream = _secured(sock, keyring.client(rank), False, until_s)
        if keyring.rank_of(stream.peer_der) != rank:
            raise HandshakeRefused("another certificate than the pinned one")
        stream.write(frames.encode(mine))
        # Only now it is known that our certificate was taken: TLS 1.3 tells a caller so late.
        theirs = _hello(stream)
        _check(theirs, mine, rank)
        if (theirs.nonce, theirs.carries) != (mine.nonce, mine.carries):
            raise HandshakeRefused("an answer to another call")
        stream.limit(None)
    except BaseException:
        sockets.end(sock)
        raise
    return MemberConnection(stream, rank, theirs)


def read_word(stream: TlsStream) -> frames.Word:
    """Raises ``OSError``, ``MalformedFrame``."""
    header = bytearray(frames.HEADER.size)
    stream.read_exactly(memoryview(header))
    kind, length = frames.read_header(header)
    if kind != frames.WORD:
        raise MalformedFrame("a piece where a word belongs")
    body = bytearray(length)
    stream.read_exactly(memoryview(body))
    return frames.decode(body)


def _secured(sock: socket.socket, context: ssl.SSLContext, is_server: bool, until_s: float) -> TlsStream:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = TlsStream(sock, context, is_server=is_server)
    stream.handshake(until_s)
    return stream


def _hello(stream: TlsStream) -> MemberHello:
    try:
        word = read_word(stream)
    except MalformedFrame as error:
        raise HandshakeRefused(f"no hello: {error}") from error
    if not isinstance(word, MemberHello):
        raise HandshakeRefused(f"no hello but {type(word).__name__}")
    return word


def _check(theirs: MemberHello, mine: MemberHello, rank: int) -> None:
    if (theirs.version, theirs.run) != (mine.version, mine.run):
        raise HandshakeRefused(f"version {theirs.version} of run {theirs.run!r}")
    if theirs.rank != rank:
        raise HandshakeRefused(f"member {rank} says that it is member {theirs.rank}")
