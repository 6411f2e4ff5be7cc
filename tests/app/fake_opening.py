"""Opens a fake node instead of ``app.connection.connect``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.connection import NodeConnection
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem, TandemError
from tests.core.fake_node import FakeNode


class FakeOpening:
    """``problem``: why it cannot be opened. ``node`` and ``connection``: those opened last."""

    def __init__(self, problem: Problem | None = None, own: bool = True) -> None:
        self.problem = problem
        self.own = own
        self.opened = 0
        self.closed = 0
        self.node = FakeNode()
        self.connection: NodeConnection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[NodeConnection]:
        if self.problem is not None:
            raise TandemError.of(self.problem)
        self._loop = asyncio.get_running_loop()
        self.node.held.set()
        self.connection = NodeConnection(self.node, own=self.own)
        self.opened += 1
        try:
            yield self.connection
        finally:
            self.closed += 1

    def happen(self, event: ev.Event) -> None:
        """Callable from any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.node.happen, event)

    def lose(self, problem: Problem) -> None:
        """Breaks the connection. Callable from any thread."""
        assert self._loop is not None
        assert self.connection is not None
        self._loop.call_soon_threadsafe(self.connection.lost.set_result, problem)
