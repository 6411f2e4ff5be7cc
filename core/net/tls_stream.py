"""TLS over one socket, for one thread at a time, with fewer system calls than ``ssl.SSLSocket``.

OpenSSL works on memory buffers here: on a socket it needs three system calls per 16 KiB, and
``SSLSocket.shutdown`` removes the encryption before it shuts down, while another thread may send.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable

from core.net import tls

CHUNK_BYTES = 256 * 1024
_Bytes = bytes | bytearray | memoryview
_AT_ONCE: int | None = getattr(socket, "MSG_DONTWAIT", None)
"""None on Windows."""


def wake(sock: socket.socket) -> None:
    """Interrupt whatever another thread does with the socket; that thread closes it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class Sockets:
    """A set of open sockets: closing it wakes the threads that wait on them. Any thread."""

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
        """Raises ``ConnectionError`` after ``close``, and closes the socket."""
        with self._lock:
            if not self._closed.is_set():
                self._open.add(sock)
                return
        sock.close()
        raise ConnectionError("these sockets are closed already")

    def end(self, sock: socket.socket) -> None:
        """Close one socket. Call from the thread that uses it."""
        with self._lock:
            self._open.discard(sock)
        sock.close()

    def close(self) -> None:
        with self._lock:
            self._closed.set()
            still_open = list(self._open)
        for sock in still_open:
            wake(sock)


def secured(
    sock: socket.socket, context: ssl.SSLContext, sockets: Sockets, *, is_server: bool, until_s: float
) -> TlsStream:
    """A stream over a connected socket among ``sockets``, after the handshake. ``until_s``: the deadline
    (``time.monotonic``), which stays in force. Raises ``OSError``."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = TlsStream(sock, context, is_server=is_server, close=sockets.end)
    stream.handshake(until_s)
    return stream


class TlsStream:
    """Reading and writing raise ``OSError``; ``ConnectionError`` where the other end closed."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        is_server: bool,
        close: Callable[[socket.socket], None] = socket.socket.close,
    ) -> None:
        self.sock, self._close = sock, close
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._chunk = memoryview(bytearray(CHUNK_BYTES))
        self._until_s: float | None = None
        self._silence_s: float | None = None
        self._behind = memoryview(b"")
        """Encrypted bytes that are not sent yet."""

    def wake(self) -> None:
        """Interrupt whatever another thread does with the stream; that thread calls ``end``."""
        wake(self.sock)

    def end(self) -> None:
        self._close(self.sock)

    def handshake(self, until_s: float) -> None:
        """Do the TLS handshake. ``until_s``: as for ``limit``, and still in force afterwards. Raises
        ``OSError``."""
        self.limit(until_s)
        try:
            while True:
                try:
                    self._tls.do_handshake()
                except ssl.SSLWantReadError:
                    self._flush()
                    self._receive()
                else:
                    self._flush()
                    return
        except ssl.SSLError:
            with contextlib.suppress(OSError):
                self._flush()  # the alert, which tells the reason
            raise

    def limit(self, until_s: float | None) -> None:
        """Deadline (``time.monotonic``) for all further reading and writing, even if data trickles in. None:
        unlimited."""
        self._until_s = until_s
        self.sock.settimeout(self._silence_s)

    def limit_silence(self, each_s: float) -> None:
        """Let reading raise ``TimeoutError`` after ``each_s`` without a byte. It can be retried."""
        self._silence_s = each_s
        self.sock.settimeout(each_s)

    @property
    def peer_der(self) -> bytes:
        return tls.peer_der(self._tls)

    @property
    def version(self) -> str | None:
        return self._tls.version()

    def read_some(self, into: memoryview) -> int:
        """Read at least one byte. Returns the number of bytes read."""
        while True:
            try:
                got = int(self._tls.read(len(into), into))
            except ssl.SSLWantReadError:
                self._receive()
                continue
            if not got:
                raise ConnectionError("the other end closed the connection")
            return got

    def read_available(self, into: memoryview) -> int:
        """Read at least one byte, and as much of the already received data as fits. Returns the number of
        bytes read."""
        at = self.read_some(into)
        while at < len(into) and (self._incoming.pending or self._tls.pending()):
            try:
                got = int(self._tls.read(len(into) - at, into[at:]))
            except ssl.SSLWantReadError:
                break
            if not got:  # the end, which the next reader sees
                break
            at += got
        return at

    def read_exactly(self, into: memoryview) -> None:
        at = 0
        while at < len(into):
            at += self.read_some(into[at:])

    def write(self, *parts: _Bytes) -> None:
        """Write all parts, joined."""
        self._encrypt(parts)
        self._flush()

    def write_at_once(self, *parts: _Bytes) -> None:
        """Write as much as possible without waiting; the rest goes before the next write."""
        self._encrypt(parts)
        self._behind = memoryview(bytes(self._behind) + self._outgoing.read())
        if _AT_ONCE is not None:
            with contextlib.suppress(BlockingIOError):
                self._behind = self._behind[self.sock.send(self._behind, _AT_ONCE) :]

    @property
    def is_behind(self) -> bool:
        return len(self._behind) > 0

    def _encrypt(self, parts: tuple[_Bytes, ...]) -> None:
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[self._tls.write(view) :]

    def _flush(self) -> None:
        if self._behind:
            behind, self._behind = self._behind, memoryview(b"")
            self._keep_limit()
            self.sock.sendall(behind)
        if data := self._outgoing.read():
            self._keep_limit()
            self.sock.sendall(data)

    def _receive(self) -> None:
        self._keep_limit()
        got = self.sock.recv_into(self._chunk)
        if not got:
            raise ConnectionError("the other end closed the connection")
        self._incoming.write(self._chunk[:got])

    def _keep_limit(self) -> None:
        if self._until_s is None:
            return
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the other end took too long")
        self.sock.settimeout(left_s if self._silence_s is None else min(left_s, self._silence_s))
