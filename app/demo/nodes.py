"""The demo's nodes: agents that run, with their events in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from app.demo.agent import Agent
from app.follower import Follower
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State

Say = Callable[[str], None]
"""Tells a person one line."""
NAMES = ("anna", "ben", "cleo")
T = TypeVar("T")


class Node:
    """An agent and its events. A wait that runs out raises with the end of that node's log."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.follower = Follower(agent.connection)

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def state(self) -> State:
        return self.agent.state

    @property
    def device(self) -> DeviceId:
        assert self.state.me is not None  # a node that greeted us has started
        return self.state.me.device

    async def until(self, condition: Callable[[State], T | None], limit_s: float, awaited: str) -> T:
        """``awaited``: what this node was to do, as in *find ben*."""
        found = await self.follower.until(condition, limit_s)
        if found is None:
            raise self.agent.failure(f"did not {awaited} within {limit_s:g} s")
        return found


@asynccontextmanager
async def running(count: int, folder: Path) -> AsyncIterator[Sequence[Node]]:
    """``count`` nodes with homes below ``folder``, all of them ended afterwards."""
    agents: list[Agent] = []
    starts = [asyncio.create_task(Agent.start(name, folder / name)) for name in NAMES[:count]]
    try:
        agents.extend(await asyncio.gather(*starts))
        nodes = [Node(agent) for agent in agents]
        for node in nodes:
            node.follower.__enter__()
        yield nodes
    finally:
        # Those that started although another did not.
        for start in starts:
            start.cancel()
        started = await asyncio.gather(*starts, return_exceptions=True)
        await asyncio.gather(*(agent.end() for agent in started if isinstance(agent, Agent)))
