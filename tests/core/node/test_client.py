"""A second process and the home's node, over streams in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from core.home.home import Home, prepare
from core.net.tls import Streams
from core.node import client as module
from core.node import json_lines, local_socket
from core.node.client import Client
from core.node.local_socket import CLIENTS, LocalSocket
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, StateNow
from core.vocabulary.commands import GetState, RunDoctor, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from tests.core.fake_node import OTHER, FakeNode, found
from tests.core.nodes import refusal
from tests.core.wires import Network


class FakeServer:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True

    async def wait_closed(self) -> None:
        assert self.closed


class Wire:
    """Replaces a home's Unix socket."""

    def __init__(self) -> None:
        self.network = Network()
        self.serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None] | None = None
        self.servers: list[FakeServer] = []
        self.ours = True
        self.a_trainers = False
        self.node_ends: list[Streams] = []

    async def listen(self, serve: Callable[..., None], **_: object) -> FakeServer:
        self.serve = serve
        self.servers.append(FakeServer())
        return self.servers[-1]

    async def reach(self, path: Path, limit: int) -> Streams:
        if self.serve is None:
            raise FileNotFoundError(2, "No such file or directory")
        here, there = self.network.pair()
        self.node_ends.append(there)
        self.serve(*there)
        return here


@pytest.fixture
async def wire(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    wire = Wire()
    monkeypatch.setattr(asyncio, "start_unix_server", wire.listen)
    monkeypatch.setattr(asyncio, "open_unix_connection", wire.reach)
    monkeypatch.setattr(local_socket, "_listen", lambda home: None)
    monkeypatch.setattr(local_socket, "same_user", lambda sock: wire.ours)
    monkeypatch.setattr(local_socket, "is_trainers", lambda sock: wire.a_trainers)
    yield wire
    for _, writer in wire.node_ends:
        writer.transport.abort()
    await asyncio.sleep(0)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


@pytest.fixture
async def node(home: Home, wire: Wire) -> AsyncIterator[FakeNode]:
    node = FakeNode()
    server = LocalSocket(home, node)
    await server.open()
    yield node
    await server.close()
    assert all(each.closed for each in wire.servers)
    await server.close()


@pytest.fixture
async def client(home: Home, node: FakeNode) -> AsyncIterator[Client]:
    client = await Client.connect(home)
    yield client
    await client.close()


async def test_a_client_has_the_nodes_state_commands_and_events(client: Client, node: FakeNode) -> None:
    heard: list[ev.Event] = []
    leave = client.subscribe(lambda event, state: heard.append(event))
    assert client.state == node.state
    assert await client.submit(StopRun()) == Done()
    node.happen(found())
    assert await client.submit(GetState()) == StateNow(state=node.state)
    assert node.commands == [StopRun(), GetState()]
    assert heard == [found()] and client.state == node.state
    leave()
    node.happen(ev.DeviceGone(device=OTHER))
    await client.submit(GetState())
    assert heard == [found()] and client.state == node.state
    assert client.problem is None


async def test_two_commands_at_once_each_get_their_own_answer(client: Client, node: FakeNode) -> None:
    slow = asyncio.create_task(client.submit(RunDoctor()))
    await node.asked.wait()
    assert await client.submit(GetState()) == StateNow(state=node.state)
    assert not slow.done()
    node.held.set()
    assert await slow == Done()


async def test_the_end_of_the_node_is_no_failure(client: Client, node: FakeNode, wire: Wire) -> None:
    node.happen(ev.NodeStopped())
    await client.submit(GetState())
    wire.node_ends[0][1].close()
    async with asyncio.timeout(60):
        await client.wait_closed()
    assert client.state.stopped and client.problem is None
    assert refusal(await client.submit(StopRun())) == "node-gone"


async def test_commands_are_refused_when_the_node_breaks_off(
    client: Client, node: FakeNode, wire: Wire
) -> None:
    waiting = asyncio.create_task(client.submit(RunDoctor()))
    await node.asked.wait()
    wire.node_ends[0][1].transport.abort()
    assert refusal(await waiting) == "node-gone"
    await client.wait_closed()
    assert client.problem is not None and client.problem.code == "node-gone"
    assert refusal(await client.submit(GetState())) == "node-gone"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"type":"UnheardOf"}\n', "versions-differ"),
        (b"no json\n", "versions-differ"),
        (json_lines.write_greeting(FakeNode().state, missed=3), "fell-behind"),
    ],
)
async def test_a_message_that_cannot_be_followed_ends_the_connection_with_its_reason(
    client: Client, wire: Wire, line: bytes, code: str
) -> None:
    wire.node_ends[0][1].write(line)
    async with asyncio.timeout(60):
        await client.wait_closed()
    assert client.problem is not None and client.problem.code == code
    assert refusal(await client.submit(GetState())) == code


async def test_without_a_node_there_is_no_client(home: Home, wire: Wire) -> None:
    with pytest.raises(TandemError) as failure:
        await Client.connect(home)
    assert failure.value.code == "no-node" and str(home.folder) in failure.value.what


async def test_a_silent_node_is_not_waited_for(home: Home, wire: Wire) -> None:
    wire.serve = lambda reader, writer: None
    with pytest.raises(TandemError) as failure:
        await Client.connect(home, limit_s=0.5)
    assert failure.value.code == "no-node"
    assert await wire.node_ends[0][0].read() == b"", "the connection is closed"


@pytest.mark.parametrize("line", [b"HTTP/1.1 200 OK\n", b"", json_lines.write_event(found())])
async def test_another_program_or_version_is_refused(home: Home, wire: Wire, line: bytes) -> None:
    def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(line)
        writer.close()

    wire.serve = other
    with pytest.raises(TandemError) as failure:
        await Client.connect(home)
    assert failure.value.code == "versions-differ"


async def test_another_vocabulary_is_refused(home: Home, wire: Wire) -> None:
    greeting = msgspec.json.decode(json_lines.write_greeting(FakeNode().state))
    greeting["vocabulary"] += 1

    def newer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(msgspec.json.encode(greeting) + b"\n")

    wire.serve = newer
    with pytest.raises(TandemError) as failure:
        await Client.connect(home)
    assert failure.value.code == "versions-differ"


async def test_an_answer_that_never_comes_is_given_up(client: Client, node: FakeNode) -> None:
    client.answer_limit_s = 0.01
    assert refusal(await client.submit(RunDoctor())) == "no-answer"
    node.held.set()
    assert await client.submit(GetState()) == StateNow(state=node.state)


async def test_an_answer_is_waited_for_as_long_as_a_checkpoint_comes(
    client: Client, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    async def wait(answer: asyncio.Future[object], limit_s: float) -> None:
        waits.append(len(waits))
        if len(waits) < 4:
            node.happen(ev.CheckpointCame(run=RunId("r"), device=OTHER, done=len(waits), total=9))
            while client.state.fetch != node.state.fetch:  # noqa: ASYNC110  (no event of its own)
                await asyncio.sleep(0)

    monkeypatch.setattr(module, "_wait", wait)
    assert refusal(await client.submit(RunDoctor())) == "no-answer"
    assert len(waits) == 4


async def test_an_answer_is_waited_for_as_long_as_files_are_read(
    client: Client, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    async def wait(answer: asyncio.Future[object], limit_s: float) -> None:
        waits.append(len(waits))
        if len(waits) < 4:
            node.happen(ev.FilesRead(script="train.py", done=len(waits), total=9))
            while client.state.reading != node.state.reading:  # noqa: ASYNC110  (no event of its own)
                await asyncio.sleep(0)

    monkeypatch.setattr(module, "_wait", wait)
    assert refusal(await client.submit(RunDoctor())) == "no-answer"
    assert len(waits) == 4


async def test_other_users_and_too_many_clients_are_refused(home: Home, node: FakeNode, wire: Wire) -> None:
    wire.ours = False
    with pytest.raises(TandemError):
        await Client.connect(home)
    wire.ours, wire.a_trainers = True, True
    with pytest.raises(TandemError) as refused:
        await Client.connect(home)
    assert refused.value.code == "script-commands"
    wire.a_trainers = False
    clients = [await Client.connect(home) for _ in range(CLIENTS)]
    with pytest.raises(TandemError):
        await Client.connect(home)
    await clients.pop().close()
    async with asyncio.timeout(60):
        while len(clients) < CLIENTS:
            with contextlib.suppress(TandemError):  # the node's end closes some turns later
                clients.append(await Client.connect(home))
    for each in clients:
        await each.close()


async def test_a_new_socket_takes_the_place_of_the_old_one_and_clients_go_on(home: Home, wire: Wire) -> None:
    node = FakeNode()
    server = LocalSocket(home, node)
    await server.open()
    first = await Client.connect(home)
    await server.reopen()
    assert [each.closed for each in wire.servers] == [True, False]
    assert await first.submit(StopRun()) == Done()
    second = await Client.connect(home)
    node.happen(ev.NodeStopped())
    await server.close()
    for each in (first, second):
        await each.wait_closed()
        assert each.state.stopped and each.problem is None
        await each.close()


async def test_a_socket_that_cannot_be_made_says_why(
    home: Home, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(home: Home) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(local_socket, "_listen", refuse)
    with pytest.raises(TandemError, match="Read-only file system") as failure:
        await LocalSocket(home, FakeNode()).open()
    assert failure.value.code == "no-local-socket" and failure.value.fix
