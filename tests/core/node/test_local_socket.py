"""A second process on the same home: same user, same commands, same events."""

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.home import socket_path
from core.home.home import Home, prepare
from core.node import client, json_lines, local_socket
from core.node.client import Client
from core.node.local_socket import SPEAKERS, LocalSocket, peer_uid, same_user
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, Refused, StateNow
from core.vocabulary.commands import GetState, RunDoctor, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from tests.core.fake_node import OTHER, FakeNode, found
from tests.core.nodes import wait_for

pytestmark = pytest.mark.real


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


@contextlib.asynccontextmanager
async def listening(home: Home, most_speakers: int = SPEAKERS) -> AsyncIterator[FakeNode]:
    node = FakeNode()
    server = LocalSocket(home, node, most_speakers=most_speakers)
    await server.open()
    try:
        yield node
    finally:
        await server.close()


async def test_a_client_has_the_state_and_the_commands(home: Home) -> None:
    async with listening(home) as node:
        client = await Client.connect(home)

        assert client.state == node.state
        assert await client.submit(StopRun()) == Done()
        assert await client.submit(GetState()) == StateNow(state=node.state)
        assert node.commands == [StopRun(), GetState()]
        await client.close()


async def test_a_client_follows_the_events(home: Home) -> None:
    async with listening(home) as node:
        client = await Client.connect(home)
        came = asyncio.Event()
        heard: list[ev.Event] = []

        def hear(event: ev.Event, state: object) -> None:
            heard.append(event)
            came.set()

        unsubscribe = client.subscribe(hear)
        node.happen(found())
        await asyncio.wait_for(came.wait(), 30)
        unsubscribe()

        assert heard == [found()]
        assert client.state == node.state
        await client.close()


async def test_the_end_of_the_node_is_the_last_event(home: Home) -> None:
    async with listening(home) as node:
        client = await Client.connect(home)
        node.happen(ev.NodeStopped())
        await asyncio.wait_for(client.wait_closed(), 30)

        assert client.state.stopped
        assert client.problem is None
        assert isinstance(await client.submit(GetState()), Refused)
        await client.close()


async def test_a_command_under_way_is_answered_when_the_node_goes(home: Home) -> None:
    async with listening(home) as node:
        client = await Client.connect(home)
        asked = asyncio.create_task(client.submit(RunDoctor()))
        await asyncio.wait_for(node.asked.wait(), 30)

    answer = await asyncio.wait_for(asked, 30)

    assert isinstance(answer, Refused)
    assert answer.problem.code == "node-gone"
    await client.close()


async def test_an_answer_may_take_as_long_as_a_checkpoint_comes(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(home) as node:
        connected = await Client.connect(home)
        times_out: asyncio.Queue[None] = asyncio.Queue()
        monkeypatch.setattr(client, "_wait", lambda answer, limit_s: times_out.get())
        answer = asyncio.create_task(connected.submit(RunDoctor()))
        await asyncio.wait_for(node.asked.wait(), 30)
        for done in (0, 1, 2):
            came = ev.CheckpointCame(run=RunId("old"), device=OTHER, done=done, total=9)
            node.happen(came)
            await wait_for(connected, lambda state, came=came: state.fetch == came)  # type: ignore[misc]
            times_out.put_nowait(None)
            while not times_out.empty():  # noqa: ASYNC110  (a turn of the loop or two)
                await asyncio.sleep(0)
            assert not answer.done()
        times_out.put_nowait(None)
        refused = await asyncio.wait_for(answer, 30)
        assert isinstance(refused, Refused) and refused.problem.code == "no-answer"
        node.held.set()
        await connected.close()


async def test_garbage_is_answered_and_the_next_command_heard(home: Home) -> None:
    async with listening(home):
        reader, writer = await asyncio.open_unix_connection(socket_path.find(home))
        writer.write(b"\x00\xffGET / HTTP/1.1\n" + b"x" * (1 << 21) + b'\n{"id":1,"type":"stop_run"}\n')
        writer.write_eof()
        told = [json.loads(line) async for line in reader]

        assert [line.get("type") for line in told] == [None, "refused", "refused", "done"]
        writer.close()
        await writer.wait_closed()


async def test_only_this_user_may_reach_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(home) as node:
        path = socket_path.find(home)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        monkeypatch.setattr(local_socket, "same_user", lambda connection: False)

        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        assert node.listeners == 0
        writer.close()
        await writer.wait_closed()


async def test_too_many_speakers_are_turned_away(home: Home) -> None:
    async with listening(home, most_speakers=1):
        first = await Client.connect(home)
        with pytest.raises(TandemError):
            await Client.connect(home)
        assert await first.submit(StopRun()) == Done()
        await first.close()


async def test_without_a_node_a_client_says_so(home: Home) -> None:
    with pytest.raises(TandemError) as failure:
        await Client.connect(home)

    assert failure.value.code == "no-node"


async def test_a_socket_left_by_a_crash_is_replaced_and_taken_away_at_the_end(home: Home) -> None:
    home.socket.write_bytes(b"")

    async with listening(home):
        client = await Client.connect(home)
        await client.close()

    assert not socket_path.find(home).exists()


async def test_a_client_that_fell_behind_says_so(home: Home) -> None:
    state = FakeNode().state

    async def node(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json_lines.write_greeting(state) + json_lines.write_greeting(state, 7))
        await writer.drain()
        await reader.read()
        writer.close()

    path = await asyncio.to_thread(socket_path.choose, home)
    server = await asyncio.start_unix_server(node, path)
    client = await Client.connect(home)
    await asyncio.wait_for(client.wait_closed(), 30)
    await client.close()
    server.close()
    await server.wait_closed()

    assert client.problem is not None
    assert (client.problem.code, client.problem.detail) == ("fell-behind", "7 events were missed")


async def test_a_node_of_another_vocabulary_is_named(home: Home) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"vocabulary": 2, "state": {"of": "tomorrow", "devices": 3}}\n')
        await writer.drain()
        writer.close()

    path = await asyncio.to_thread(socket_path.choose, home)
    server = await asyncio.start_unix_server(other, path)
    with pytest.raises(TandemError) as failure:
        await Client.connect(home)
    server.close()
    await server.wait_closed()

    assert failure.value.code == "versions-differ"


def test_both_ends_of_a_pair_are_this_user() -> None:
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        assert peer_uid(one) == os.geteuid()
        assert same_user(two)


def test_another_user_is_not_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        stranger = os.geteuid() + 1
        monkeypatch.setattr("core.node.local_socket.os.geteuid", lambda: stranger)
        assert not same_user(one)
