"""A window of a home whose node is paired with another, as seen by the measuring process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from app.demo import pairing
from app.demo.agent import Agent, running
from bench.laptops import silent, trust_each_other
from bench.window import screen

LONGEST_LINE = 1 << 24
LIMIT_S = 700.0
END_S = 60.0


class Opened:
    """The window's process; ``tell`` sends it a line and returns its answer."""

    def __init__(self, process: asyncio.subprocess.Process, where: str) -> None:
        self._process = process
        self.where = where
        self.begun: dict[str, Any] = {}
        """What it reported when it was complete."""

    @property
    def pid(self) -> int:
        return self._process.pid

    async def tell(self, *words: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write((" ".join(words) + "\n").encode())
        await self._process.stdin.drain()
        return await self.hear()

    async def hear(self) -> dict[str, Any]:
        """Raises RuntimeError if it has ended, TimeoutError after ``LIMIT_S``."""
        assert self._process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the window has ended before it answered")
        said: dict[str, Any] = msgspec.json.decode(line)
        if "problem" in said:
            raise RuntimeError(f"the window {said.pop('problem')}; {said}")
        return said

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def window_and_agents(folder: Path) -> AsyncIterator[tuple[Opened, Agent, Agent]]:
    """A window, and two agents. The window and the first agent are each paired with the second."""
    async with running(3, folder) as (first, second, third):
        await pairing.find_each_other((first, second, third), silent)
        for node in (first, third):
            await pairing.pair(node, second, silent)
            await trust_each_other(node, second)
        # Its home continues under a window.
        await third.end()
        with screen.screen() as environment:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.window.driven", str(third.home.folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
                env={**environment, "CUDA_VISIBLE_DEVICES": "-1"},
            )
            opened = Opened(process, screen.words(environment))
            try:
                opened.begun = await opened.hear()
                yield opened, first, second
            finally:
                await opened.end()
