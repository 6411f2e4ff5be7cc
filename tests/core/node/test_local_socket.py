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
from core.node import local_socket
from core.node.client import Client
from core.node.local_socket import CLIENTS, LocalSocket, peer_uid, same_user
from tests.core.fake_node import FakeNode

pytestmark = pytest.mark.real


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


@contextlib.asynccontextmanager
async def listening(home: Home, most_clients: int = CLIENTS) -> AsyncIterator[FakeNode]:
    node = FakeNode()
    server = LocalSocket(home, node, most_clients=most_clients)
    await server.open()
    try:
        yield node
    finally:
        await server.close()


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


async def test_a_socket_left_by_a_crash_is_replaced_and_taken_away_at_the_end(home: Home) -> None:
    home.socket.write_bytes(b"")

    async with listening(home):
        client = await Client.connect(home)
        await client.close()

    assert not socket_path.find(home).exists()


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
