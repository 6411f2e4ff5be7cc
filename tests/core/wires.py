"""Connections in memory: real streams, flow control and closing as over TLS, and no socket."""

from __future__ import annotations

import asyncio

from core.net.tls import Streams

HIGH_BYTES = 1 << 16
"""What the other end has not read, before whoever writes has to wait."""


class Shown:
    """In place of an ``SSLObject``: the certificate (DER) that the other end proved."""

    def __init__(self, der: bytes) -> None:
        self._der = der

    def getpeercert(self, binary_form: bool = False) -> bytes:
        assert binary_form
        return self._der


class _End(asyncio.Transport):
    """One end of a wire. What is written arrives at ``other`` on a later turn of the loop."""

    other: _End

    def __init__(self, own: tuple[str, int], peer: tuple[str, int], shown: Shown | None) -> None:
        super().__init__({"sockname": own, "peername": peer, "ssl_object": shown})
        self._loop = asyncio.get_running_loop()
        self._protocol: asyncio.Protocol
        self._waiting = bytearray()
        self._reads, self._ends, self._closed, self._held_back = True, False, False, False

    def streams(self) -> Streams:
        reader = asyncio.StreamReader(loop=self._loop)
        self._protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        self._protocol.connection_made(self)
        return reader, asyncio.StreamWriter(self, self._protocol, reader, self._loop)

    # --- what streams use --------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closed:
            self.other._waiting += data
            self._loop.call_soon(self.other._arrive)
            if len(self.other._waiting) > HIGH_BYTES and not self._held_back:
                self._held_back = True
                self._protocol.pause_writing()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.other._ends = True
            self._waiting.clear()
            self._loop.call_soon(self.other._arrive)
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._closed

    def get_write_buffer_size(self) -> int:
        return len(self.other._waiting)

    def can_write_eof(self) -> bool:
        return False

    def is_reading(self) -> bool:
        return self._reads

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._loop.call_soon(self._arrive)

    # --- what comes ---------------------------------------------------------------------------------

    def _arrive(self) -> None:
        if self._closed or not self._reads:
            return
        if self._waiting:
            data = bytes(self._waiting)
            self._waiting.clear()
            self._protocol.data_received(data)
        if self.other._held_back and not self._waiting:
            self.other._held_back = False
            if not self.other._closed:
                self.other._protocol.resume_writing()
        if self._ends and not self._waiting:
            self._protocol.eof_received()
            self.close()


def wire(
    caller: tuple[str, int],
    called: tuple[str, int],
    caller_der: bytes = b"",
    called_der: bytes = b"",
) -> tuple[Streams, Streams]:
    """The two ends of a new connection: the caller's, and the one that was called. Addresses and certificates
    are those of each side; without certificates it is plain."""
    first = _End(caller, called, Shown(called_der) if called_der else None)
    second = _End(called, caller, Shown(caller_der) if caller_der else None)
    first.other, second.other = second, first
    return first.streams(), second.streams()
