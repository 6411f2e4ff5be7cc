"""Whole nodes without a socket: streams and discovery in memory, no local socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core.discovery.record import Announcement
from core.node.node import Node
from tests.core.nodes import home_of, quick_watch
from tests.core.wires import Network

MakeNode = Callable[..., Awaitable[Node]]


class FakePresence:
    """Immediately finds everybody present on the same network."""

    present: dict[str, FakePresence]

    def __init__(
        self, announcement: Announcement, *, discovery: bool, wanted: object, **callbacks: Any
    ) -> None:
        self.announcement = announcement
        self.discovery = discovery
        self.wanted = wanted
        self.callbacks = callbacks
        self.changes: list[dict[str, object]] = []
        self.closed = False

    @property
    def addresses(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.announcement.port}",)

    async def start(self) -> None:
        if self.discovery:
            for other in self.present.values():
                other.find(self)
                self.find(other)
            self.present[self.announcement.device] = self

    def find(self, other: FakePresence) -> None:
        self.callbacks["on_found"](other.announcement.device, other.announcement.name, other.addresses)

    async def change(self, **change: object) -> None:
        self.changes.append(change)

    async def close(self) -> None:
        self.closed = True
        self.present.pop(self.announcement.device, None)
        for other in self.present.values():
            other.callbacks["on_gone"](self.announcement.device)


class FakeLocalSocket:
    def __init__(self, home: object, node: object) -> None:
        self.done: list[str] = []

    async def open(self) -> None:
        self.done.append("open")

    async def reopen(self) -> None:
        self.done.append("reopen")

    async def close(self) -> None:
        self.done.append("close")


@pytest.fixture
async def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeNode]:
    Network().install(monkeypatch, "core.pairing.driver")
    FakePresence.present = {}
    monkeypatch.setattr("core.node.neighbours.Presence", FakePresence)
    monkeypatch.setattr("core.node.node.LocalSocket", FakeLocalSocket)
    nodes: list[Node] = []

    async def start(name: str, **chosen: object) -> Node:
        nodes.append(await Node.start(home_of(tmp_path, name, **chosen), watch=quick_watch()))
        return nodes[-1]

    yield start
    for each in nodes:
        await each.stop()
