"""A home's node: the one already running, reached over its socket, or one started for the duration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.home.home import Home
from core.node.client import Client
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.node import NodeFace

if TYPE_CHECKING:
    from core.node.node import Node

_GONE = Problem(code="node-gone", what="The node of this home has ended.", fix="Start the command again.")


class CannotStart(TandemError):
    """No node can be started or reached in this home; says why and how to fix it."""


@dataclass(frozen=True, slots=True)
class NodeConnection:
    """``own``: the node was started for this connection, so its discovery has just begun."""

    node: NodeFace
    own: bool
    lost: asyncio.Future[Problem] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done when the node becomes unreachable without a ``NodeStopped``."""


@asynccontextmanager
async def connect(home: Home) -> AsyncIterator[NodeConnection]:
    """The home's node, whichever process runs it. Raises ``CannotStart``."""
    try:
        started = await _start(home)
    except CannotStart as error:
        if error.code != "home-held":
            raise
        async with _client(home) as connection:
            yield connection
        return
    try:
        yield NodeConnection(started, own=True)
    finally:
        await started.stop()


@asynccontextmanager
async def start(home: Home) -> AsyncIterator[NodeConnection]:
    """A node of our own, for a process that is the node. Raises ``CannotStart``, also if one already runs."""
    node = await _start(home)
    try:
        yield NodeConnection(node, own=True)
    finally:
        await node.stop()


async def _start(home: Home) -> Node:
    # Imported late: subcommands that only reach another process's node need none of a node's imports.
    from core.node.node import Node

    try:
        return await Node.start(home)
    except TandemError as error:
        raise CannotStart.of(error.problem) from error


@asynccontextmanager
async def _client(home: Home) -> AsyncIterator[NodeConnection]:
    try:
        client = await Client.connect(home)
    except TandemError as error:
        raise CannotStart.of(error.problem) from error
    connection = NodeConnection(client, own=False)

    async def watch() -> None:
        await client.wait_closed()
        if not connection.lost.done():
            connection.lost.set_result(client.problem or _GONE)

    watching = asyncio.create_task(watch(), name="connection-watch")
    try:
        yield connection
    finally:
        watching.cancel()
        await client.close()
