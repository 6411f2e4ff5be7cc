"""The demo's nodes: ``tandem agent --jsonl`` child processes, each with its own home and socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

from app.connection import NodeConnection
from app.follower import Follower
from core.home import settings_file
from core.home.home import Home
from core.node import json_lines
from core.node.client import MAX_TOLD_BYTES, Client
from core.runtime.background import Background
from core.supervisor.spawn import program
from core.vocabulary.answers import Refused
from core.vocabulary.commands import Quit
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.settings import Settings
from core.vocabulary.state import State
from core.vocabulary.text import plain, plain_lines
from core.vocabulary.versions import ROOT

Say = Callable[[str], None]
"""Shows a person one line."""
T = TypeVar("T")
NAMES = ("anna", "ben", "cleo")
READY_S = 60.0
QUIT_S = 15.0
END_S = 5.0
READ_BYTES = 1 << 16
LOG_LINES = 15
LOG_BYTES = 16 * 1024
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"


class Agent:
    """Lives from ``start`` to ``end``; if this process dies its stdin ends, and the agent exits.

    Its stdout reports whether it started; everything else goes over its home's socket.
    """

    connection: NodeConnection
    follower: Follower
    """Both are set once ``start`` returned; the events are in order."""

    def __init__(self, name: str, home: Home, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.home = home
        self._process = process
        self._client: Client | None = None
        self._tasks = Background()

    @classmethod
    async def start(cls, name: str, folder: Path, *, ready_s: float = READY_S) -> Self:
        """Returns when the node listens. Raises ``TandemError`` with the end of its log."""
        home = Home(folder)
        folder.mkdir(mode=0o700)
        # Port 0: another Tandem may have the usual one. Loopback only: nobody else needs to see the demo.
        settings = Settings(name=name, port=0, interfaces=(LOOPBACK,), first_run_done=True)
        settings_file.write(home.settings, settings)
        with _errors(home).open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *program(),
                *("agent", "--jsonl", "--home", str(folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=MAX_TOLD_BYTES,
                # `-m` looks into the working directory first: it must be ours, never a script's folder.
                cwd=ROOT if ROOT.is_dir() else None,
                env=_environment(),
                # Ctrl-C at the terminal is for the demo, which then ends its agents in order.
                start_new_session=True,
            )
        agent = cls(name, home, process)
        try:
            async with asyncio.timeout(ready_s):
                await agent._reach()
        except TimeoutError:
            await agent.end()
            raise agent.failure(f"did not say within {ready_s:g} s that it is ready") from None
        except BaseException:
            await agent.end()
            raise
        return agent

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def state(self) -> State:
        return self.connection.node.state

    @property
    def device(self) -> DeviceId:
        assert self.state.me is not None  # a node that greeted us has started
        return self.state.me.device

    async def until(self, condition: Callable[[State], T | None], limit_s: float, awaited: str) -> T:
        """``awaited``: the expected result, as in *find ben*. Raises with the end of its log."""
        found = await self.follower.until(condition, limit_s)
        if found is None:
            raise self.failure(f"did not {awaited} within {limit_s:g} s")
        return found

    async def _reach(self) -> None:
        """Raises ``TandemError`` if the node ends first, or reports why it cannot continue."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        try:
            told = json_lines.read_message(line) if line else None
        except ValueError as error:
            said = plain(line.decode("utf-8", "replace"))
            raise self.failure(f"sent something that the demo cannot read ({error}): {said}") from error
        match told:
            case None:
                raise self.failure("has ended")
            case json_lines.Replied(answer=Refused(problem=problem)):
                raise self.failure(f"cannot go on: {problem}")
        self._client = client = await Client.connect(self.home, limit_s=READY_S)
        self.connection = NodeConnection(client, own=False)
        self.follower = Follower(self.connection).__enter__()
        self._tasks.start(f"drain what {self.name} prints", self._drain(self._process.stdout))
        self._tasks.start(f"watch {self.name}", self._watch(client))

    async def _drain(self, stdout: asyncio.StreamReader) -> None:
        """Discards the agent's output: unread, it would block the agent."""
        while await stdout.read(READ_BYTES):
            pass

    async def _watch(self, client: Client) -> None:
        await client.wait_closed()
        if not client.state.stopped:
            self.connection.lost.set_result(self.failure("has ended").problem)

    def failure(self, what: str) -> TandemError:
        """An error saying ``what`` this node did or did not do, with the end of its log."""
        return TandemError(
            code="demo-failed",
            what=f"{self.name} {what}.",
            fix="The end of its log follows; tandem doctor looks for causes, and --keep keeps the homes.",
            detail=self.log_end(),
        )

    def log_end(self) -> str:
        """The last lines of its log and of its stderr."""
        lines: list[str] = []
        for path in (self.home.logs / "tandem.log", _errors(self.home)):
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - LOG_BYTES))
                lines.extend(plain_lines(file.read().decode("utf-8", "replace"))[-LOG_LINES:])
        return "\n".join(lines)

    async def end(self) -> None:
        """Quit, then terminate, then kill; returns when the process is gone."""
        if (client := self._client) is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIT_S):
                    await client.submit(Quit())
                    await client.wait_closed()
                    await self._process.wait()
            await client.close()
        for end in (self._process.terminate, self._process.kill):
            if self._process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._process.wait()
        await self._tasks.cancel()
        if self._process.stdin is not None:
            self._process.stdin.close()


@asynccontextmanager
async def running(count: int, folder: Path) -> AsyncIterator[Sequence[Agent]]:
    """Starts ``count`` nodes with homes below ``folder``, and ends all of them afterwards."""
    starts = [asyncio.create_task(Agent.start(name, folder / name)) for name in NAMES[:count]]
    try:
        yield await asyncio.gather(*starts)
    finally:
        # Also ends those that started although another did not.
        for start in starts:
            start.cancel()
        started = await asyncio.gather(*starts, return_exceptions=True)
        await asyncio.gather(*(agent.end() for agent in started if isinstance(agent, Agent)))


def _environment() -> dict[str, str]:
    # Two trainers can't share one GPU in a collective (NCCL: duplicate GPU): the demo trains on the CPU.
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}


def _errors(home: Home) -> Path:
    return home.folder.with_name(f"{home.folder.name}.stderr")
