"""A conversation: every command answered, every event sent, in order; nobody can crash it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from core.node.conversation import AT_ONCE, Conversation
from core.vocabulary import events as ev
from tests.core.fake_node import FakeNode, found


class Wire:
    """Both ends of a line in memory. ``stuck``: the other side does not read."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.stuck = asyncio.Event()
        self.stuck.set()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._news = asyncio.Condition()

    def say(self, *lines: object) -> None:
        for line in lines:
            self._chunks.put_nowait(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    def end(self) -> None:
        self._chunks.put_nowait(b"")

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._chunks.get():
            yield chunk

    async def write(self, line: bytes) -> None:
        await self.stuck.wait()
        async with self._news:
            self.heard.append(json.loads(line))
            self._news.notify_all()

    async def wait_heard(self, count: int) -> None:
        async with asyncio.timeout(30), self._news:
            await self._news.wait_for(lambda: len(self.heard) >= count)


async def test_the_first_line_is_the_state_and_the_vocabularys_number() -> None:
    node, wire = FakeNode(), Wire()
    wire.end()

    await Conversation(node, wire.write).run(wire.chunks())

    assert wire.heard[0]["vocabulary"] == 2
    assert wire.heard[0]["state"]["me"]["name"] == "here"
    assert node.listeners == 0


async def test_every_command_is_answered_before_the_end() -> None:
    node, wire = FakeNode(), Wire()
    wire.say({"id": 1, "type": "get_state"}, b"garbage\n", b'{"id":2,"type":"stop_run"}')
    wire.end()

    await Conversation(node, wire.write).run(wire.chunks())

    replies = {line["reply"]: line for line in wire.heard[1:]}
    assert replies[1]["type"] == "state_now"
    assert replies[None]["problem"]["code"] == "bad-line"
    assert replies[2]["type"] == "done"


async def test_a_slow_command_does_not_hold_up_the_next() -> None:
    node, wire = FakeNode(), Wire()
    talk = asyncio.create_task(Conversation(node, wire.write).run(wire.chunks()))
    wire.say({"id": 1, "type": "run_doctor"}, {"id": 2, "type": "stop_run"})

    await wire.wait_heard(2)
    assert wire.heard[1] == {"reply": 2, "type": "done"}

    node.held.set()
    wire.end()
    await talk
    assert wire.heard[2] == {"reply": 1, "type": "done"}


async def test_too_many_commands_at_once_are_refused() -> None:
    node, wire = FakeNode(), Wire()
    talk = asyncio.create_task(Conversation(node, wire.write).run(wire.chunks()))
    wire.say(*({"id": number, "type": "run_doctor"} for number in range(AT_ONCE + 1)))

    await wire.wait_heard(2)

    assert wire.heard[1]["reply"] == AT_ONCE
    assert wire.heard[1]["problem"]["code"] == "too-many-commands"
    node.held.set()
    wire.end()
    await talk
    assert len(wire.heard) == 2 + AT_ONCE


async def test_events_come_in_order_and_go_on_when_asked_to_stay() -> None:
    node, wire = FakeNode(), Wire()
    talk = asyncio.create_task(Conversation(node, wire.write).run(wire.chunks(), stay=True))
    wire.end()
    await wire.wait_heard(1)

    node.happen(found("first"))
    node.happen(found("second"))
    await wire.wait_heard(3)
    node.happen(ev.NodeStopped())
    await asyncio.wait_for(talk, 30)

    assert [line.get("name") for line in wire.heard[1:3]] == ["first", "second"]
    assert wire.heard[3]["type"] == "node_stopped"


async def test_a_reader_that_falls_behind_gets_the_state_anew() -> None:
    node, wire = FakeNode(), Wire()
    wire.stuck.clear()
    talk = asyncio.create_task(Conversation(node, wire.write, kept_bytes=500).run(wire.chunks()))
    wire.say({"id": 1, "type": "stop_run"})
    await node.asked.wait()
    await asyncio.sleep(0)
    for number in range(10):
        node.happen(found(f"device {number}"))
    wire.stuck.set()
    await wire.wait_heard(3)

    anew = wire.heard[-1]
    assert {"reply": 1, "type": "done"} in wire.heard
    assert anew["missed"] == 10
    assert anew["state"]["devices"]["b" * 64]["name"] == "device 9"

    node.happen(found("later"))
    await wire.wait_heard(4)
    assert wire.heard[-1]["name"] == "later"
    wire.end()
    await talk


async def test_a_reader_that_went_away_ends_the_conversation_quietly() -> None:
    node, wire = FakeNode(), Wire()

    async def broken(line: bytes) -> None:
        raise BrokenPipeError

    await asyncio.wait_for(Conversation(node, broken).run(wire.chunks(), stay=True), 30)

    assert node.listeners == 0
