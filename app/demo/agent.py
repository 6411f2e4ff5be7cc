"""One node of the demo: a ``tandem agent --jsonl`` child process with its own home, as a ``NodeFace``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

import app
from app.connection import Connection
from core.home import settings_file
from core.home.home import Home
from core.node import json_lines
from core.supervisor.spawn import program
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import Command, Quit
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.node import Listener
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from core.vocabulary.text import plain, plain_lines

READY_S = 60.0
ANSWER_S = 60.0
QUIT_S = 15.0
END_S = 5.0
MAX_LINE_BYTES = 64 << 20
LOG_LINES = 15
LOG_BYTES = 16 * 1024
_HOUSE = Path(app.__file__).resolve().parent.parent
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"


class Agent:
    """Lives from ``start`` to ``end``; ends by itself when this process dies, for its stdin then ends."""

    def __init__(self, name: str, home: Home, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.home = home
        self.state = State()
        self.connection = Connection(self, own=False)
        self._process = process
        self._listeners: list[Listener] = []
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._number = 0
        self._problem: Problem | None = None
        """What it said of its own failure."""
        self._ended = False
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(), name=f"demo-{name}")

    @classmethod
    async def start(cls, name: str, folder: Path, *, ready_s: float = READY_S) -> Self:
        """Returns when the node listens. Raises ``TandemError`` with the end of its log."""
        home = Home(folder)
        folder.mkdir(mode=0o700)
        # Port 0: another Tandem may have the usual one. Loopback alone: the demo is nobody else's business.
        settings = Settings(name=name, port=0, interfaces=(LOOPBACK,), first_run_done=True)
        settings_file.write(home.settings, settings)
        with _errors(home).open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *program(),
                *("agent", "--jsonl", "--home", str(folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=MAX_LINE_BYTES,
                # `-m` looks into the working directory first: it must be ours, never a script's folder.
                cwd=_HOUSE if _HOUSE.is_dir() else None,
                env=_environment(),
                # Ctrl-C at the terminal is for the demo, which then ends its agents in order.
                start_new_session=True,
            )
        agent = cls(name, home, process)
        try:
            await agent.wait_ready(ready_s)
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

    async def wait_ready(self, limit_s: float) -> None:
        """Raises ``TandemError`` where it ends first, ``TimeoutError`` where it takes too long."""
        async with asyncio.timeout(limit_s):
            await asyncio.shield(self._greeted)

    async def submit(self, command: Command) -> Answer:
        assert self._process.stdin is not None
        if self._ended:
            return Refused(problem=self._problem or self.failure("has ended").problem)
        self._number += 1
        number = self._number
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(ANSWER_S):
                self._process.stdin.write(json_lines.write_asked(number, command))
                await self._process.stdin.drain()
                return await answer
        except TimeoutError:
            return Refused(problem=self.failure(f"did not answer {command} within {ANSWER_S:g} s").problem)
        except ConnectionError:
            return Refused(problem=self.failure("has ended").problem)
        finally:
            del self._waiting[number]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def failure(self, what: str) -> TandemError:
        """``what`` this node did or did not do, with the end of its log."""
        return TandemError(
            code="demo-failed",
            what=f"{self.name} {what}.",
            fix="The end of its log follows; tandem doctor looks for causes, and --keep keeps the homes.",
            detail=self.log_end(),
        )

    def log_end(self) -> str:
        """The last lines of its log and of what it wrote to stderr."""
        lines: list[str] = []
        for path in (self.home.logs / "tandem.log", _errors(self.home)):
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - LOG_BYTES))
                lines.extend(plain_lines(file.read().decode("utf-8", "replace"))[-LOG_LINES:])
        return "\n".join(lines)

    async def end(self) -> None:
        """Quit, then terminate, then kill; returns when the process is gone."""
        if not self._ended and self._greeted.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIT_S):
                    await self.submit(Quit())
                    await self._process.wait()
        for end in (self._process.terminate, self._process.kill):
            if self._process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        line = b""
        try:
            while line := await self._process.stdout.readline():
                self._on_told(json_lines.read_told(line))
        except ValueError as error:
            said = plain(line.decode("utf-8", "replace"))
            self._problem = self.failure(f"said what the demo does not understand ({error}): {said}").problem
        # Its stdin may still take a command for a moment, but nobody would answer it.
        self._ended = True
        problem = self._problem or self.failure("has ended").problem
        if not self._greeted.done():
            self._greeted.set_exception(TandemError.of(problem))
            self._greeted.exception()  # whoever waited may have given up: then nobody asks for it
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(Refused(problem=problem))
        if not self.connection.lost.done() and not self.state.stopped:
            self.connection.lost.set_result(problem)

    def _on_told(self, told: json_lines.Greeting | json_lines.Replied | object) -> None:
        match told:
            case json_lines.Greeting():
                self.state = told.state
                if not self._greeted.done():
                    self._greeted.set_result(None)
            case json_lines.Replied(id=None, answer=Refused(problem=problem)):
                self._problem = self.failure(f"cannot go on: {problem}").problem
            case json_lines.Replied():
                waiting = self._waiting.get(told.id) if isinstance(told.id, int) else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(told.answer)
            case _:
                self.state = apply(self.state, told)  # type: ignore[arg-type]
                for listener in tuple(self._listeners):
                    listener(told, self.state)  # type: ignore[arg-type]


def _environment() -> dict[str, str]:
    # Two trainers can't share one GPU in a collective (NCCL: duplicate GPU): the demo trains on the CPU.
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}


def _errors(home: Home) -> Path:
    return home.folder.with_name(f"{home.folder.name}.stderr")
