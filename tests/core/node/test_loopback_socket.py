"""Without Unix sockets, a second process reaches the node by its home's secret."""

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.home.home import Home, prepare
from core.node import loopback_socket
from core.node.client import Client
from core.node.local_socket import LocalSocket
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, StateNow
from core.vocabulary.commands import GetState, StopRun
from core.vocabulary.errors import TandemError
from tests.core.fake_node import FakeNode

pytestmark = pytest.mark.real


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


@contextlib.asynccontextmanager
async def listening(home: Home) -> AsyncIterator[FakeNode]:
    node = FakeNode()
    server = LocalSocket(home, node, loopback=True)
    await server.open()
    try:
        yield node
    finally:
        await server.close()


async def told_by_port(home: Home, first: bytes) -> bytes:
    """The reply to a process that knows only the port."""
    port = int(home.loopback.read_bytes().split()[0])
    reader, writer = await asyncio.open_connection(loopback_socket.HOST, port)
    writer.write(first)
    try:
        async with asyncio.timeout(30):
            return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_a_client_has_the_state_the_commands_and_the_last_event(home: Home) -> None:
    async with listening(home) as node:
        client = await Client.connect(home, loopback=True)
        assert client.state == node.state
        assert await client.submit(StopRun()) == Done()
        assert await client.submit(GetState()) == StateNow(state=node.state)
        node.happen(ev.NodeStopped())
        await asyncio.wait_for(client.wait_closed(), 30)
        assert client.state.stopped and client.problem is None
        await client.close()
    assert not home.loopback.exists()
    assert not home.socket.exists()


@pytest.mark.parametrize(
    "first", [b"\n", b"00" * 32 + b"\n", b"x" * (1 << 20), b'{"id":1,"type":"stop_run"}\n']
)
async def test_a_process_without_the_secret_learns_and_does_nothing(home: Home, first: bytes) -> None:
    async with listening(home) as node:
        try:
            assert await told_by_port(home, first) == b""
        except ConnectionError:
            pass  # The process sent more than the node read.
        assert node.listeners == 0 and node.commands == []
        client = await Client.connect(home, loopback=True)
        await client.close()


async def test_a_silent_process_is_not_waited_for() -> None:
    silent = asyncio.StreamReader()
    assert not await loopback_socket.knows_secret(silent, b"secret", limit_s=0.01)
    silent.feed_data(b"secret\n")
    assert await loopback_socket.knows_secret(silent, b"secret")


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX'")
async def test_others_cannot_read_the_secret(home: Home) -> None:
    async with listening(home):
        assert stat.S_IMODE(home.loopback.stat().st_mode) == 0o600
        home.loopback.chmod(0o644)
        with pytest.raises(TandemError):
            await Client.connect(home, loopback=True)


async def test_each_node_has_a_secret_of_its_own(home: Home) -> None:
    async with listening(home):
        first = home.loopback.read_bytes().split()[1]
    async with listening(home):
        assert home.loopback.read_bytes().split()[1] != first


@pytest.mark.parametrize("left", [None, b"", b"no port\n", b"1 secret\n"])
async def test_without_a_node_a_client_says_so(home: Home, left: bytes | None) -> None:
    if left is not None:
        home.loopback.write_bytes(left)
        home.loopback.chmod(0o600)
    with pytest.raises(TandemError) as failure:
        await Client.connect(home, loopback=True)
    assert failure.value.code == "no-node"
