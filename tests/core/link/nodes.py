"""Nodes reduced to links: an identity, a listener and links, and their events."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from core.home.identity import load_or_create
from core.link.dial import Backoff
from core.link.driver import LIMITS, Limits
from core.link.hub import Links
from core.net import tls
from core.net.strangers import Guest
from core.net.tls import Streams
from core.node.listener import LISTEN_LIMITS, Listener, ListenLimits
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Hello, Message
from tests.core.link.examples import hello

LIMIT_S = 60
GOODBYE = Problem(code="closed", what="Tandem was closed there.")
QUICK = Backoff(first_s=0.02, most_s=0.2)

Told = TypeVar("Told")


@dataclass
class Up:
    device: DeviceId
    hello: Hello
    address: str


@dataclass
class Away:
    device: DeviceId
    problem: Problem


@dataclass
class Down:
    device: DeviceId
    problem: Problem


@dataclass
class Came:
    device: DeviceId
    message: Message


@dataclass
class Diary:
    """Events in order, and a wait for a future one."""

    entries: list[object] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, entry: object) -> None:
        self.entries.append(entry)
        self.news.set()

    async def wait(self, kind: type[Told], count: int = 1) -> Told:
        """The ``count``th entry of that kind."""
        await self.wait_until(lambda: len(self.all(kind)) >= count)
        return self.all(kind)[count - 1]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def all(self, kind: type[Told]) -> list[Told]:
        return [entry for entry in self.entries if isinstance(entry, kind)]


class FakeTimer:
    def __init__(self, at_s: float, callback: Callable[[], None]) -> None:
        self.at_s, self.callback = at_s, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """A clock advanced by the test."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay: float, callback: Callable[[], None], /) -> FakeTimer:
        self.timers.append(FakeTimer(self.now_s + delay, callback))
        return self.timers[-1]

    def sleep(self, seconds: float) -> None:
        """The laptop sleeps: everything due is late by that much."""
        self.now_s += seconds
        for timer in self.timers:
            timer.at_s += seconds

    def advance(self, seconds: float) -> None:
        """Calls what is due, each at its time."""
        until_s = self.now_s + seconds
        while due := [t for t in self.timers if not t.cancelled and t.at_s <= until_s]:
            timer = min(due, key=lambda timer: timer.at_s)
            self.timers.remove(timer)
            self.now_s = timer.at_s
            timer.callback()
        self.now_s = until_s


class LinkNode:
    """``await start()``; links to the nodes it should ``trust``; ``await close()``."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        backoff: Backoff = QUICK,
        clock: FakeClock | None = None,
        limits: Limits = LIMITS,
        listen_limits: ListenLimits = LISTEN_LIMITS,
    ) -> None:
        self.name = name
        self.identity = load_or_create(folder / name)
        self.device = self.identity.device_id
        self.certificate = self.identity.cert_der
        self.diary = Diary()
        self.sockets: list[socket.socket] = []
        self.proofs: list[bytes] = []
        self.excess: list[Problem] = []
        self.versions: dict[str, Any] = {}
        self.links = Links(
            self.identity,
            self.hello,
            on_up=lambda device, hello, address: self.diary.add(Up(device, hello, address)),
            on_away=lambda device, problem: self.diary.add(Away(device, problem)),
            on_down=lambda device, problem: self.diary.add(Down(device, problem)),
            on_message=lambda device, message: self.diary.add(Came(device, message)),
            on_excess=lambda device, problem: self.excess.append(problem),
            backoff=backoff,
            limits=limits,
            clock=clock,
        )
        self.listener = Listener(
            self.identity,
            on_pairing=self.on_pairing,
            on_files=lambda sock, guest: sock.close(),
            on_hello=self.links.accept,
            on_proof=self.on_proof,
            limits=listen_limits,
        )
        self.pins: list[bytes] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.port}"

    def hello(self) -> Hello:
        return hello(self.name, port=self.listener.port, **self.versions)

    async def start(self, port: int = 0) -> LinkNode:
        await self.listener.start(port, ["127.0.0.1"])
        return self

    def trust(self, *others: LinkNode, known: bool = True) -> None:
        """``known``: their addresses are known."""
        for other in others:
            self.pins.append(other.certificate)
            self.listener.trust(self.pins)
            self.links.pair(other.certificate, name=other.name, hints=[other.address] if known else [])

    async def call(self, other: LinkNode) -> Streams:
        """A manual connection to the other's port, as this device."""
        context = tls.client_context(self.identity, other.certificate)
        return await tls.connect("127.0.0.1", other.listener.port, context, other.certificate)

    def on_pairing(self, sock: socket.socket, guest: Guest) -> None:
        self.sockets.append(sock)
        guest.leave()
        self.diary.add(sock)

    async def on_proof(self, streams: Streams) -> None:
        self.proofs.append(await streams[0].read())
        streams[1].transport.abort()
        self.diary.add("proof")

    async def close(self) -> None:
        await self.listener.close()
        await self.links.close(GOODBYE)
        for sock in self.sockets:
            sock.close()
        # Transports close their sockets one turn of the loop later.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
