"""Carries one of TensorFlow's connections over TLS: one thread per direction, each with its own connection.

Data is preceded by its length, to tell an end from a broken connection.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

from core.net.tls_stream import Sockets, TlsStream, wake

CHUNK_BYTES = 256 * 1024
_LENGTH = struct.Struct(">I")
_END = 0


class Carrier:
    """``plain``: TensorFlow's connection. The thread that ends last closes all three."""

    def __init__(
        self,
        plain: socket.socket,
        sending: TlsStream,
        receiving: TlsStream,
        sockets: Sockets,
    ) -> None:
        self._plain, self._sending, self._receiving = plain, sending, receiving
        self._sockets = sockets
        self._lock = threading.Lock()
        self._running = 2

    def start(self) -> None:
        for carry, name in ((self._carry_out, "relay-out"), (self._carry_in, "relay-in")):
            threading.Thread(target=self._run, args=(carry,), name=name, daemon=True).start()

    def _run(self, carry: Callable[[], None]) -> None:
        try:
            carry()
        except OSError:
            # One direction is cut: neither side can use the other one alone.
            for sock in (self._plain, self._sending.sock, self._receiving.sock):
                wake(sock)
        with self._lock:
            self._running -= 1
            if self._running:
                return
        for sock in (self._plain, self._sending.sock, self._receiving.sock):
            self._sockets.end(sock)

    def _carry_out(self) -> None:
        chunk = memoryview(bytearray(CHUNK_BYTES))
        while got := self._plain.recv_into(chunk):
            self._sending.write(_LENGTH.pack(got), chunk[:got])
        self._sending.write(_LENGTH.pack(_END))

    def _carry_in(self) -> None:
        header = memoryview(bytearray(_LENGTH.size))
        chunk = memoryview(bytearray(CHUNK_BYTES))
        while True:
            self._receiving.read_exactly(header)
            (left,) = _LENGTH.unpack(header)
            if left == _END:
                with contextlib.suppress(OSError):  # TensorFlow may have hung up already
                    self._plain.shutdown(socket.SHUT_WR)
                return
            while left:
                got = self._receiving.read_available(chunk[: min(left, CHUNK_BYTES)])
                self._plain.sendall(chunk[:got])
                left -= got
