"""Two or more devices that listen like a node: with sockets and TLS on loopback, or in memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

from core.home.identity import Identity, load_or_create
from core.net.address import Address
from core.net.tls import accept, server_context
from core.pairing.driver import PairingDriver
from core.pairing.state import LIMITS, Event, Limits, Paired
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import PairingCodeShown, PairingEnded
from core.vocabulary.ids import DeviceId
from tests.core.wires import Accepted, Network

LIMIT_S = 60
Kind = TypeVar("Kind")


class Device:
    """A node's pairing part: a listener that routes by the first byte, and a trust store in memory."""

    def __init__(self, identity: Identity, name: str, limits: Limits = LIMITS) -> None:
        self.identity, self.name, self.limits = identity, name, limits
        self.trusted: dict[bytes, str] = {}
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.tls_refusals: list[TandemError] = []
        self.held_changes = 0
        self.on_event: Callable[[Event], None] = lambda event: None
        self.port = 0
        self.known: Collection[DeviceId] = ()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Device:
        self.port = self._open()
        self.pairing = PairingDriver(
            self.identity,
            self.name,
            lambda: self.port,
            on_event=self._hear,
            on_held=self._held,
            known_as=lambda name: self.known,
            limits=self.limits,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.pairing.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._close()
        assert self.pairing.strangers.present == 0

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Paired):
            self.trusted[event.cert] = event.name
        self.events.put_nowait(event)
        self.on_event(event)

    def _held(self) -> None:
        self.held_changes += 1

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _open(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self._spawn(self._listen())
        port: int = self._listener.getsockname()[1]
        return port

    def _close(self) -> None:
        self._listener.close()

    def _pins(self) -> list[bytes]:
        held = self.pairing.held()
        return [*self.trusted, *([held] if held else [])]

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock, _ = await loop.sock_accept(self._listener)
            sock.setblocking(False)
            self._spawn(self._route(sock))

    async def _route(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        readable = loop.create_future()

        def has_come() -> None:
            if not readable.done():
                readable.set_result(None)

        loop.add_reader(sock, has_come)
        try:
            await readable
            first = sock.recv(1, socket.MSG_PEEK)
        except (OSError, asyncio.CancelledError):
            loop.remove_reader(sock)
            sock.close()
            return
        loop.remove_reader(sock)
        if first != b"\x16":
            self.pairing.accept_plain(sock)
            return
        pins = self._pins()
        try:
            streams = await accept(sock, server_context(self.identity, pins), pins)
        except TandemError as error:
            self.tls_refusals.append(error)
            return
        await self.pairing.accept_proof(streams)

    async def event(self, kind: type[Kind]) -> Kind:
        """The next event, which must be of ``kind`` or come before one."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                event = await self.events.get()
                if isinstance(event, kind):
                    return event
                assert not isinstance(event, PairingEnded | Paired), event

    async def code(self) -> PairingCodeShown:
        return await self.event(PairingCodeShown)

    async def problem(self) -> Problem:
        problem = (await self.event(PairingEnded)).problem
        assert problem is not None
        return problem

    async def failure(self) -> str:
        return (await self.problem()).code


class MemoryDevice(Device):
    """Listens on a network in memory."""

    def __init__(self, identity: Identity, name: str, network: Network, limits: Limits = LIMITS) -> None:
        super().__init__(identity, name, limits)
        self._network = network

    def _open(self) -> int:
        self._listening = self._network.listen()
        self._spawn(self._listen())
        return self._listening.port

    def _close(self) -> None:
        self._listening.close()

    async def _listen(self) -> None:
        while True:
            accepted, _ = await self._listening.accept()
            self._spawn(self._hear_one(accepted))

    async def _hear_one(self, accepted: Accepted) -> None:
        if await accepted.peek() != 0x16:
            self.pairing.accept_plain(cast(socket.socket, accepted))
            return
        try:
            streams = await accepted.prove(self.identity, self._pins())
        except TandemError as error:
            self.tls_refusals.append(error)
            return
        await self.pairing.accept_proof(streams)


@asynccontextmanager
async def device(
    folder: Path, name: str, network: Network | None = None, limits: Limits = LIMITS
) -> AsyncIterator[Device]:
    identity = load_or_create(folder / name)
    made = MemoryDevice(identity, name, network, limits) if network else Device(identity, name, limits)
    async with made as there:
        yield there


class Raw:
    """A stranger that sends bytes to the pairing port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, body: bytes) -> None:
        self.writer.write(len(body).to_bytes(4, "big") + body)
        await self.writer.drain()

    async def frame(self) -> bytes:
        async with asyncio.timeout(LIMIT_S):
            length = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(length)

    async def wait_closed(self) -> None:
        """Returns when the other side has closed."""
        async with asyncio.timeout(LIMIT_S):
            try:
                while await self.reader.read(4096):
                    pass
            except ConnectionError:
                pass


@asynccontextmanager
async def stranger(there: Device) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Polls for a condition on this loop that has no notification."""
    for _ in range(LIMIT_S * 100):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")
