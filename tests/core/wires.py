"""A network in memory: real streams, with flow control and ends as over sockets and TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from core.home.identity import Identity
from core.net.tls import Streams
from core.vocabulary.errors import TandemError

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
        super().__init__({"sockname": own, "peername": peer, "ssl_object": shown, "sslcontext": shown})
        self._plain = shown is None
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
        return self._plain

    def write_eof(self) -> None:
        self.other._ends = True
        self._loop.call_soon(self.other._arrive)

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
            self._ends = False
            if not self._protocol.eof_received():
                self.close()


Answer = Callable[[Streams], Awaitable[object]]


class Network:
    """Who answers at which port of 127.0.0.1; ``install`` puts it in the place of sockets and TLS."""

    def __init__(self) -> None:
        self.ports = count(27600)
        self._callers = count(50000)
        self._plain: dict[int, Answer] = {}
        self._tls: dict[int, tuple[bytes, Answer]] = {}
        self._tasks: set[asyncio.Future[object]] = set()

    def install(self, monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
        """``modules``: those that took ``connect`` and ``client_context`` by name from ``core.net.tls``."""
        monkeypatch.setattr(asyncio, "open_connection", self.open_connection)
        monkeypatch.setattr(asyncio, "start_server", self.start_server)
        for module in ("core.net.tls", *modules):
            monkeypatch.setattr(f"{module}.connect", self.connect)
            monkeypatch.setattr(f"{module}.client_context", lambda identity, pin: identity)

    def answer(
        self, port: int, *, plain: Answer | None = None, tls: tuple[bytes, Answer] | None = None
    ) -> None:
        """``tls``: with the certificate (DER) that is shown there; whom to believe is up to who answers."""
        if plain is not None:
            self._plain[port] = plain
        if tls is not None:
            self._tls[port] = tls

    def leave(self, port: int) -> None:
        self._plain.pop(port, None)
        self._tls.pop(port, None)

    async def connect(self, host: str, port: int, caller: Identity, pin: bytes) -> Streams:
        """``tls.connect``, with the caller's identity for its context."""
        await asyncio.sleep(0)
        if port not in self._tls:
            raise TandemError(code="unreachable", what=f"{host} port {port} can't be reached.")
        shown, answer = self._tls[port]
        if shown != pin:
            raise TandemError(code="wrong-certificate", what="It is not the paired device.")
        return self._wire(port, answer, Shown(shown), Shown(caller.cert_der))

    async def open_connection(
        self, host: str = "", port: int = 0, *, limit: int = 0, sock: Accepted | None = None
    ) -> Streams:
        await asyncio.sleep(0)
        if sock is not None:
            return sock.streams
        host.encode("idna")  # as a resolver does: raises UnicodeError for what is no name
        if port not in self._plain:
            raise ConnectionRefusedError(111, "Connection refused")
        return self._wire(port, self._plain[port])

    async def start_server(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], *_: object
    ) -> Server:
        server = Server(self, next(self.ports))
        self._plain[server.port] = lambda streams: serve(*streams)
        return server

    def _wire(
        self, port: int, answer: Answer, called: Shown | None = None, caller: Shown | None = None
    ) -> Streams:
        here, there = ("127.0.0.1", next(self._callers)), ("127.0.0.1", port)
        first, second = _End(here, there, called), _End(there, here, caller)
        first.other, second.other = second, first
        streams = second.streams()
        task = asyncio.ensure_future(answer(streams))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return first.streams()


class Accepted:
    """In place of an accepted socket."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams

    def getpeername(self) -> tuple[str, int]:
        peer: tuple[str, int] = self.streams[1].get_extra_info("peername")
        return peer

    def close(self) -> None:
        self.streams[1].close()


class Server:
    """In place of asyncio's server."""

    def __init__(self, network: Network, port: int) -> None:
        self._network = network
        self.port = port

    @property
    def sockets(self) -> list[Server]:
        return [self]

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._network.leave(self.port)
