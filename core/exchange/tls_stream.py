"""TLS over one socket, for one thread at a time, with fewer system calls than ``ssl.SSLSocket`` makes.

OpenSSL reads and writes memory here: a socket of its own costs it three system calls for each 16 KiB, and its
``shutdown`` takes the encryption away before it shuts down, while another thread may send.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from core.net import tls

CHUNK_BYTES = 256 * 1024
_Bytes = bytes | bytearray | memoryview


class TlsStream:
    """Reading and writing raise ``OSError``; ``ConnectionError`` where the other end closed."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, is_server: bool) -> None:
        self.sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._chunk = memoryview(bytearray(CHUNK_BYTES))
        self._until_s: float | None = None
        self.passed_bytes = 0
        """Which the keys of this connection have encrypted or decrypted."""

    def handshake(self, until_s: float) -> None:
        """``until_s``: as for ``limit``."""
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
                self._flush()  # the alert, which says why
            raise

    def limit(self, until_s: float | None) -> None:
        """When everything must be read and written that is from now on, as ``time.monotonic`` counts, in
        however small parts it comes. None: as long as it takes."""
        self._until_s = until_s
        self.sock.settimeout(None)

    @property
    def peer_der(self) -> bytes:
        return tls.peer_der(self._tls)

    @property
    def version(self) -> str | None:
        return self._tls.version()

    def read_some(self, into: memoryview) -> int:
        """At least one byte."""
        while True:
            try:
                got = int(self._tls.read(len(into), into))
            except ssl.SSLWantReadError:
                self._receive()
                continue
            if not got:
                raise ConnectionError("the other end closed the connection")
            self.passed_bytes += got
            return got

    def read_at_hand(self, into: memoryview) -> int:
        """At least one byte, and of what has come with it as much as there is room for."""
        at = self.read_some(into)
        while at < len(into) and (self._incoming.pending or self._tls.pending()):
            try:
                got = int(self._tls.read(len(into) - at, into[at:]))
            except ssl.SSLWantReadError:
                break
            if not got:  # the end, which the next one to read is told
                break
            self.passed_bytes += got
            at += got
        return at

    def read_exactly(self, into: memoryview) -> None:
        at = 0
        while at < len(into):
            at += self.read_some(into[at:])

    def write(self, *parts: _Bytes) -> None:
        """All of them, as one."""
        for part in parts:
            view = memoryview(part)
            self.passed_bytes += len(view)
            while view:
                view = view[self._tls.write(view) :]
        self._flush()

    def _flush(self) -> None:
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
        self.sock.settimeout(left_s)
