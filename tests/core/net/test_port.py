"""One port for a node: the wanted one, its neighbour, or any."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from core.net.port import LOOPBACK, Opened, open_port

pytestmark = pytest.mark.real


@pytest.fixture
def holder() -> Iterator[socket.socket]:
    """Another program's listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def close(opened: Opened) -> None:
    for each in opened.sockets:
        each.close()


async def test_any_port_is_outside_the_ephemeral_range_and_the_same_for_ipv4_and_ipv6() -> None:
    opened = await open_port(0, LOOPBACK)
    try:
        assert 10_000 <= opened.port < 20_000
        assert {each.getsockname()[1] for each in opened.sockets} == {opened.port}
        assert opened.sockets[0].family == socket.AF_INET
        assert opened.notice is None
    finally:
        close(opened)


async def test_a_taken_port_gives_a_neighbour_and_names_the_holder(holder: socket.socket) -> None:
    taken = holder.getsockname()[1]
    # Neighbours that nobody else on this machine uses at the moment.
    free = await open_port(0, ["127.0.0.1"])
    close(free)
    opened = await open_port(taken, ["127.0.0.1"], neighbours=[taken, free.port])
    try:
        assert opened.port == free.port
        assert opened.notice is not None
        assert opened.notice.code == "port-taken"
        assert str(taken) in opened.notice.what
        assert f"process {os.getpid()}" in opened.notice.what
        assert f":{free.port}" in opened.notice.fix
    finally:
        close(opened)
