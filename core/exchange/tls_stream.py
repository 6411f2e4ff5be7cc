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

    def handshake(self, until_s: float) -> None:
        """``until_s``: as ``time.monotonic`` counts; it bounds all round trips together."""
        try:
            while True:
                self.limit(until_s)
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
        """How long the next read or write may take; None: as long as it takes."""
        left_s = None if until_s is None else until_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            raise TimeoutError("the other end took too long")
        self.sock.settimeout(left_s)

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
                got = self._tls.read(len(into), into)
            except ssl.SSLWantReadError:
                self._receive()
                continue
            if not got:
                raise ConnectionError("the other end closed the connection")
            return int(got)

    def read_exactly(self, into: memoryview) -> None:
        at = 0
        while at < len(into):
            at += self.read_some(into[at:])

    def write(self, *parts: _Bytes) -> None:
        """All of them, as one."""
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[self._tls.write(view) :]
        self._flush()

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self.sock.sendall(data)

    def _receive(self) -> None:
        got = self.sock.recv_into(self._chunk)
        if not got:
            raise ConnectionError("the other end closed the connection")
        self._incoming.write(self._chunk[:got])
