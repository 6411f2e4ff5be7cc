"""A network in memory: real streams, with flow control and ends as over sockets and TLS."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from functools import cached_property
from itertools import count
from typing import Any, cast

import pytest

from core.home.identity import Identity
from core.net.port import Opened
from core.net.tls import Streams
from core.vocabulary.errors import TandemError

HIGH_BYTES = 1 << 16
"""Unread bytes at the other end before a writer has to wait."""


class Shown:
    """Replaces an ``SSLObject``: the certificate (DER) that the other end proved."""

    def __init__(self, der: bytes) -> None:
        self._der = der

    def getpeercert(self, binary_form: bool = False) -> bytes:
        assert binary_form
        return self._der


class _End(asyncio.Transport):
    """One end of a wire. Written data arrives at ``other`` on a later turn of the loop."""

    other: _End

    def __init__(self, own: tuple[str, int], peer: tuple[str, int]) -> None:
        super().__init__({"sockname": own, "peername": peer})
        self.shown: Shown | None = None
        """The certificate that the other end proved; None if the connection is plain."""
        self._loop = asyncio.get_running_loop()
        self._protocol: asyncio.Protocol
        self._waiting = bytearray()
        self._reads, self._ends, self._closed, self._held_back = False, False, False, False
        self.first_byte: asyncio.Future[int | None] = self._loop.create_future()
        """None: the other end closed silently."""

    def streams(self) -> Streams:
        reader = asyncio.StreamReader(loop=self._loop)
        self._protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        self._protocol.connection_made(self)
        self.resume_reading()
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

    def get_extra_info(self, name: str, default: object = None) -> Any:
        if name in ("ssl_object", "sslcontext"):
            return self.shown
        return super().get_extra_info(name, default)

    def can_write_eof(self) -> bool:
        return self.shown is None

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
        if not self.first_byte.done() and (self._waiting or self._ends):
            self.first_byte.set_result(self._waiting[0] if self._waiting else None)
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
    """Listeners by port of 127.0.0.1; ``install`` replaces sockets and TLS."""

    def __init__(self) -> None:
        self.ports = count(27600)
        self._callers = count(50000)
        self._plain: dict[int, Answer] = {}
        self._listening: dict[int, Listening] = {}
        self._tasks: set[asyncio.Future[object]] = set()

    def install(self, monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
        """``modules``: those that imported ``connect`` and ``client_context`` by name from
        ``core.net.tls``."""
        monkeypatch.setattr(asyncio, "open_connection", self.open_connection)
        monkeypatch.setattr(asyncio, "start_server", self.start_server)
        monkeypatch.setattr("core.node.listener.open_port", self.open_port)
        monkeypatch.setattr("core.node.listener._next_connection", lambda listening: listening.accept())
        monkeypatch.setattr("core.node.listener._peek", lambda sock, *_: sock.peek())
        monkeypatch.setattr("core.net.tls.accept", lambda sock, context, pins: sock.prove(context, pins))
        monkeypatch.setattr("core.net.tls.server_context", lambda identity, pins: identity)
        for module in ("core.net.tls", *modules):
            monkeypatch.setattr(f"{module}.connect", self.connect)
            monkeypatch.setattr(f"{module}.client_context", lambda identity, pin: identity)

    def listen(self, wanted: int = 0) -> Listening:
        port = wanted or next(self.ports)
        self._listening[port] = Listening(self, port)
        return self._listening[port]

    def leave(self, port: int) -> None:
        self._plain.pop(port, None)
        self._listening.pop(port, None)

    async def connect(self, host: str, port: int, caller: Identity, pin: bytes) -> Streams:
        """``tls.connect``, with the caller's identity as its context."""
        await asyncio.sleep(0)
        if port not in self._listening:
            raise TandemError(code="unreachable", what=f"{host} port {port} can't be reached.")
        return await self._listening[port].hear_tls(self._ends(port), caller, pin)

    async def open_connection(
        self, host: str = "", port: int = 0, *, limit: int = 0, sock: Accepted | None = None
    ) -> Streams:
        await asyncio.sleep(0)
        if sock is not None:
            return sock.streams
        host.encode("idna")  # as a resolver does: raises UnicodeError for an invalid name
        if port in self._listening:
            here, there = self._ends(port)
            self._listening[port].queue.put_nowait(Accepted(there))
            return here.streams()
        if port not in self._plain:
            raise ConnectionRefusedError(111, "Connection refused")
        here, there = self._ends(port)
        task = asyncio.ensure_future(self._plain[port](there.streams()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return here.streams()

    async def start_server(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], *_: object
    ) -> Server:
        server = Server(self, next(self.ports))
        self._plain[server.port] = lambda streams: serve(*streams)
        return server

    async def open_port(self, wanted: int, hosts: object = ()) -> Opened:
        """Replaces ``core.net.port``'s."""
        listening = self.listen(wanted)
        return Opened(cast(tuple[socket.socket, ...], (listening,)), listening.port)

    def pair(self) -> tuple[Streams, Streams]:
        """Both ends of a plain connection."""
        here, there = self._ends(0)
        return here.streams(), there.streams()

    def _ends(self, port: int) -> tuple[_End, _End]:
        """The caller's, and the called one."""
        here, there = ("127.0.0.1", next(self._callers)), ("127.0.0.1", port)
        first, second = _End(here, there), _End(there, here)
        first.other, second.other = second, first
        return first, second


class Accepted:
    """Replaces an accepted socket; with ``caller`` if TLS is spoken."""

    def __init__(self, end: _End, caller: Identity | None = None) -> None:
        self._end = end
        self._caller = caller
        self.shown: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The certificate (DER) that this side shows the caller."""

    @cached_property
    def streams(self) -> Streams:
        return self._end.streams()

    def setblocking(self, flag: bool) -> None: ...

    def getpeername(self) -> tuple[str, int]:
        peer: tuple[str, int] = self._end.get_extra_info("peername")
        return peer

    def close(self) -> None:
        self.streams[1].close()
        if not self.shown.done():
            self.shown.cancel()

    async def peek(self) -> int | None:
        if self._caller is not None:
            return 0x16
        async with asyncio.timeout(5.0):
            return await asyncio.shield(self._end.first_byte)

    async def prove(self, own: Identity, pins: Collection[bytes]) -> Streams:
        """Replaces ``tls.accept``, with the own identity as its context."""
        assert self._caller is not None
        self.shown.set_result(own.cert_der)
        await asyncio.sleep(0)
        if self._caller.cert_der not in pins:
            self.close()
            raise TandemError(code="wrong-certificate", what="It is not a paired device.")
        self._end.shown = Shown(self._caller.cert_der)
        return self.streams


class Listening:
    """Replaces a listening socket."""

    def __init__(self, network: Network, port: int) -> None:
        self._network = network
        self.port = port
        self.queue: asyncio.Queue[Accepted] = asyncio.Queue()

    async def accept(self) -> tuple[Accepted, tuple[str, int]]:
        accepted = await self.queue.get()
        return accepted, accepted.getpeername()

    def close(self) -> None:
        self._network.leave(self.port)
        while not self.queue.empty():
            self.queue.get_nowait().close()

    async def hear_tls(self, ends: tuple[_End, _End], caller: Identity, pin: bytes) -> Streams:
        here, there = ends
        accepted = Accepted(there, caller)
        self.queue.put_nowait(accepted)
        await asyncio.wait([accepted.shown])
        if accepted.shown.cancelled():
            raise TandemError(code="unreachable", what="It closed the connection.")
        here.shown = Shown(accepted.shown.result())
        streams = here.streams()
        if accepted.shown.result() != pin:
            streams[1].transport.abort()
            raise TandemError(code="wrong-certificate", what="It is not the paired device.")
        return streams


class Server:
    """Replaces asyncio's server."""

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
