"""From a TCP connection to one that a member of this run has proved to be at the other end of. Blocks.

Each step has a time limit. Nothing of the exchange is said before TLS has checked the certificate.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from dataclasses import dataclass

from core.exchange import frames
from core.exchange.frames import BadFrame, Hello
from core.exchange.keys import Keyring

HANDSHAKE_S = 5.0
CONNECT_S = 5.0


class Refused(ConnectionError):
    """Not a member, or one that does not speak as we do."""


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

    def replace(self, old: socket.socket, new: socket.socket) -> None:
        """``new`` took the descriptor of ``old`` over."""
        with self._lock:
            self._open.discard(old)
        self.add(new)

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
    """End whatever another thread does on it; that thread closes it.

    Not ``SSLSocket.shutdown``: that takes the encryption away before it shuts down, and what another thread
    sends between the two would travel readable.
    """
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass


@dataclass(frozen=True, slots=True)
class Met:
    """A connection whose other end is a member."""

    tls: ssl.SSLSocket
    rank: int
    hello: Hello


def accept(sock: socket.socket, keyring: Keyring, mine: Hello, sockets: Sockets) -> Met:
    """Raises ``OSError``; the socket is closed then. ``mine`` tells version, run, and rank."""
    limit_s = time.monotonic() + HANDSHAKE_S
    tls = _wrapped(sock, keyring.server, True, sockets)
    try:
        _handshake(tls, limit_s)
        rank = keyring.rank_of(tls)
        if rank is None:
            raise Refused("a certificate that is not pinned")
        theirs = _hello(tls, limit_s)
        _check(theirs, mine, rank)
        answer = Hello(
            version=mine.version, run=mine.run, rank=mine.rank, nonce=theirs.nonce, carries=theirs.carries
        )
        _write(tls, frames.encode(answer), limit_s)
    except BaseException:
        sockets.end(tls)
        raise
    tls.settimeout(None)
    return Met(tls, rank, theirs)


def dial(address: tuple[str, int], rank: int, keyring: Keyring, mine: Hello, sockets: Sockets) -> Met:
    """Raises ``OSError``."""
    info = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(info[0], info[1], info[2])
    sockets.add(sock)
    try:
        sock.settimeout(CONNECT_S)
        sock.connect(info[4])
    except BaseException:
        sockets.end(sock)
        raise
    limit_s = time.monotonic() + HANDSHAKE_S
    tls = _wrapped(sock, keyring.client(rank), False, sockets)
    try:
        _handshake(tls, limit_s)
        if keyring.rank_of(tls) != rank:
            raise Refused("another certificate than the pinned one")
        _write(tls, frames.encode(mine), limit_s)
        # Only now it is known that our certificate was taken: TLS 1.3 tells a caller so late.
        theirs = _hello(tls, limit_s)
        _check(theirs, mine, rank)
        if (theirs.nonce, theirs.carries) != (mine.nonce, mine.carries):
            raise Refused("an answer to another call")
    except BaseException:
        sockets.end(tls)
        raise
    tls.settimeout(None)
    return Met(tls, rank, theirs)


def read_exactly(tls: ssl.SSLSocket, into: memoryview) -> None:
    """Raises ``OSError``; ``ConnectionError`` where the other end closed."""
    at = 0
    while at < len(into):
        # ``read``, not ``recv``: on a socket that lost its encryption it raises instead of reading on.
        got = tls.read(len(into) - at, into[at:])
        if not got:
            raise ConnectionError("the other end closed the connection")
        at += int(got)


def read_word(tls: ssl.SSLSocket) -> frames.Word:
    """Raises ``OSError``, ``BadFrame``."""
    header = bytearray(frames.HEADER.size)
    read_exactly(tls, memoryview(header))
    kind, length = frames.read_header(header)
    if kind != frames.WORD:
        raise BadFrame("a piece where a word belongs")
    body = bytearray(length)
    read_exactly(tls, memoryview(body))
    return frames.decode(body)


def _wrapped(
    sock: socket.socket, context: ssl.SSLContext, is_server: bool, sockets: Sockets
) -> ssl.SSLSocket:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = context.wrap_socket(sock, server_side=is_server, do_handshake_on_connect=False)
    except BaseException:
        sockets.end(sock)
        raise
    sockets.replace(sock, tls)
    return tls


def _handshake(tls: ssl.SSLSocket, limit_s: float) -> None:
    _limit(tls, limit_s)
    tls.do_handshake()  # its time limit is for all of its round trips


def _hello(tls: ssl.SSLSocket, limit_s: float) -> Hello:
    _limit(tls, limit_s)
    try:
        word = read_word(tls)
    except BadFrame as error:
        raise Refused(f"no hello: {error}") from error
    if not isinstance(word, Hello):
        raise Refused(f"no hello but {type(word).__name__}")
    return word


def _check(theirs: Hello, mine: Hello, rank: int) -> None:
    if (theirs.version, theirs.run) != (mine.version, mine.run):
        raise Refused(f"version {theirs.version} of run {theirs.run!r}")
    if theirs.rank != rank:
        raise Refused(f"member {rank} says that it is member {theirs.rank}")


def _write(tls: ssl.SSLSocket, data: bytes, limit_s: float) -> None:
    _limit(tls, limit_s)
    tls.write(data)


def _limit(tls: ssl.SSLSocket, limit_s: float) -> None:
    left_s = limit_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the handshake took too long")
    tls.settimeout(left_s)
