"""A node with nothing behind it: real state, scripted answers. For the tests of window and command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, Done, StateNow
from core.vocabulary.commands import Command, GetState, RunDoctor
from core.vocabulary.ids import DeviceId
from core.vocabulary.node import Listener
from core.vocabulary.readings import Hardware
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from core.vocabulary.versions import Versions

ME = DeviceId("a" * 64)
OTHER = DeviceId("b" * 64)
HARDWARE = Hardware(cpu="Test CPU", cores=2, memory_bytes=1 << 30)
VERSIONS = Versions(
    tandem="0.1.0", protocol=1, python="3.11", tensorflow="2.21.0", keras="3.15.1", platform="Linux x86_64"
)


def started(home: Path | str = "/home") -> ev.NodeStarted:
    return ev.NodeStarted(
        device=ME,
        name="here",
        addresses=("192.168.1.2:27600",),
        versions=VERSIONS,
        hardware=HARDWARE,
        settings=Settings(),
        home=str(home),
    )


class FakeNode:
    """``held``: a RunDoctor waits for it. ``commands``: the submitted ones; ``asked``: set at each."""

    def __init__(self) -> None:
        self.state = apply(State(), started())
        self.commands: list[Command] = []
        self.held = asyncio.Event()
        self.asked = asyncio.Event()
        self._listeners: list[Listener] = []

    async def submit(self, command: Command) -> Answer:
        self.commands.append(command)
        self.asked.set()
        if isinstance(command, RunDoctor):
            await self.held.wait()
        return StateNow(state=self.state) if isinstance(command, GetState) else Done()

    async def wait_command(self, command: Command) -> None:
        while command not in self.commands:
            self.asked.clear()
            await self.asked.wait()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def happen(self, event: ev.Event) -> None:
        self.state = apply(self.state, event)
        for listener in tuple(self._listeners):
            listener(event, self.state)


def found(name: str = "other") -> ev.DeviceFound:
    return ev.DeviceFound(device=OTHER, name=name, addresses=("192.168.1.3:27600",))
