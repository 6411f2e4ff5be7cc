"""A node's events in order, with waits that have a limit. Nothing is missed between two waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Self, TypeVar

from app.connection import NodeConnection
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event, NodeStopped
from core.vocabulary.node import NodeFace
from core.vocabulary.state import State

T = TypeVar("T")
A = TypeVar("A", bound=Answer)
_STOPPED = Problem(
    code="node-gone", what="The node of this home was ended from elsewhere.", fix="Start the command again."
)


class Follower:
    """Collects events from ``with`` on. Its waits raise ``TandemError`` if the node is gone."""

    def __init__(self, connection: NodeConnection) -> None:
        self._connection = connection
        self._events: asyncio.Queue[tuple[Event, State] | Problem] = asyncio.Queue()
        self._leave: Callable[[], None] | None = None

    @property
    def node(self) -> NodeFace:
        return self._connection.node

    @property
    def own(self) -> bool:
        return self._connection.own

    @property
    def state(self) -> State:
        return self.node.state

    def __enter__(self) -> Self:
        self._leave = self.node.subscribe(self._on_event)
        self._connection.lost.add_done_callback(self._on_lost)
        return self

    def __exit__(self, *failure: object) -> None:
        self._connection.lost.remove_done_callback(self._on_lost)
        if self._leave is not None:
            self._leave()

    def _on_event(self, event: Event, state: State) -> None:
        self._events.put_nowait(_STOPPED if isinstance(event, NodeStopped) else (event, state))

    def _on_lost(self, lost: asyncio.Future[Problem]) -> None:
        self._events.put_nowait(lost.result())

    async def submit(self, command: Command, kind: type[A]) -> A:
        """Returns the answer. Raises ``TandemError`` if refused, ``TypeError`` for an answer of another
        kind."""
        answer = await self.node.submit(command)
        if isinstance(answer, Refused):
            raise TandemError.of(answer.problem)
        if not isinstance(answer, kind):
            raise TypeError(f"{command} was answered with {answer}")
        return answer

    async def next(self) -> tuple[Event, State]:
        """The next event, with no time limit: for waits that a person ends, or another limit."""
        found = await self._events.get()
        if isinstance(found, Problem):
            raise TandemError.of(found)
        return found

    def skip(self) -> None:
        """Skips all events so far."""
        kept = [found for found in self._taken() if isinstance(found, Problem)]
        for found in kept:
            self._events.put_nowait(found)

    def _taken(self) -> Iterator[tuple[Event, State] | Problem]:
        while not self._events.empty():
            yield self._events.get_nowait()

    async def until(self, condition: Callable[[State], T | None], limit_s: float) -> T | None:
        """The first non-None value of ``condition``, after an event or now; None when ``limit_s`` ran out.

        Events that came meanwhile are first: the next wait sees no state older than this one returned for.
        """
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    is_newest = self._events.empty()
                    if is_newest and (found := condition(self.state)) is not None:
                        return found
                    _, state = await self.next()
                    if (found := condition(state)) is not None:
                        return found
        except TimeoutError:
            return None
