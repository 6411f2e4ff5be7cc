"""A fake node with scripted answers, and a screen whose output can be read. For the command line's tests."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from app.cli.screen import Screen
from app.connection import NodeConnection
from app.follower import Follower
from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.plan import Member, Plan, Role, Task
from tests.core.fake_node import HARDWARE, ME, OTHER, VERSIONS, FakeNode, found

__all__ = ["HARDWARE", "ME", "OTHER", "VERSIONS", "found"]

RUN = RunId("20261121-191204-9f3a01bc")
THIRD = DeviceId("c" * 64)
PROBLEM = Problem(code="test", what="It did not work.", fix="Do this.")


class ScriptedNode(FakeNode):
    """``answers``: by command type, an answer or its factory. ``then``: events that follow a command."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[type, Answer | Callable[[Any], Answer]] = {}
        self.then: dict[type, list[ev.Event]] = {}

    async def submit(self, command: Command) -> Answer:
        answer = await super().submit(command)
        scripted = self.answers.get(type(command))
        if scripted is not None:
            answer = scripted(command) if callable(scripted) else scripted
        for event in self.then.pop(type(command), []):
            self.happen(event)
        return answer

    def refuses(self, command: type) -> None:
        self.answers[command] = Refused(problem=PROBLEM)


class Words(Screen):
    """Collects the printed words and the JSON results."""

    def __init__(self, *, json: bool = False) -> None:
        self.out = io.StringIO()
        self.err = io.StringIO()
        self._more = asyncio.Event()
        super().__init__(json=json, out=self.out, err=self.err)

    def say(self, text: str, style: str = "") -> None:
        super().say(text, style)
        self._more.set()

    async def wait_said(self, text: str) -> None:
        while text not in self.said:
            self._more.clear()
            await self._more.wait()

    @property
    def said(self) -> str:
        return (self.err if self.json else self.out).getvalue()

    @property
    def told(self) -> list[Any]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def follower(node: ScriptedNode, *, own: bool = False) -> Follower:
    """Enter it as a context; needs the running loop."""
    return Follower(NodeConnection(node, own=own))


async def typed(*lines: str) -> AsyncIterator[bytes]:
    for line in lines:
        yield line.encode()


def paired(device: DeviceId = OTHER, name: str = "other") -> ev.DevicePaired:
    return ev.DevicePaired(device=device, name=name)


def linked(device: DeviceId = OTHER, name: str = "other") -> ev.LinkUp:
    return ev.LinkUp(
        device=device, name=name, address="192.168.1.3:27600", versions=VERSIONS, hardware=HARDWARE
    )


def plan(*others: DeviceId) -> Plan:
    devices = (ME, *others)
    tasks = [Task(device=ME, role=Role.CHIEF, index=0, host="192.168.1.2", port=21000)]
    tasks.extend(
        Task(device=device, role=Role.WORKER, index=index, host=f"192.168.1.{index + 3}", port=21000)
        for index, device in enumerate(others)
    )
    return Plan(
        run=RUN,
        starter=ME,
        project=ProjectId("d" * 64),
        script="digits.py",
        members=tuple(Member(device=device, name="member") for device in devices),
        tasks=tuple(tasks),
    )
