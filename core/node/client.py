"""A second process on the same home: sends commands and gets events over the node's local socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Self

import msgspec

from core.home import socket_path
from core.home.home import Home
from core.node import json_lines, loopback_socket
from core.runtime.background import Background
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event
from core.vocabulary.node import Listener
from core.vocabulary.state import State, apply
from core.vocabulary.versions import TANDEM, VOCABULARY

CONNECT_LIMIT_S = 5.0
ANSWER_LIMIT_S = 180.0
MAX_TOLD_BYTES = 64 << 20
"""The state may be long (a run's logs); a longer line cannot be the node's."""
_log = logging.getLogger(__name__)


class _FellBehind(Exception):
    pass


class Client:
    """Connected from ``connect`` until ``close``, or until the node ends (``wait_closed``)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: State) -> None:
        self.state = state
        self.answer_limit_s = ANSWER_LIMIT_S
        self.problem: Problem | None = None
        """Why the connection ended unexpectedly."""
        self._reader = reader
        self._writer = writer
        self._listeners: list[Listener] = []
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._number = 0
        self._ended = asyncio.Event()
        self._background = Background()
        self._background.start("reading from the node", self._read())

    @classmethod
    async def connect(
        cls, home: Home, *, limit_s: float = CONNECT_LIMIT_S, loopback: bool = sys.platform == "win32"
    ) -> Self:
        """Raises ``TandemError``: no node there, or one of another version."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(limit_s):
                if loopback or sys.platform == "win32":
                    reader, writer = await loopback_socket.connect(home, MAX_TOLD_BYTES)
                else:
                    path = await asyncio.to_thread(socket_path.find, home)
                    reader, writer = await asyncio.open_unix_connection(path, limit=MAX_TOLD_BYTES)
                state = _greeted(await reader.readline())
        except (OSError, TimeoutError, AttributeError) as error:
            if writer is not None:
                writer.close()
            raise TandemError(
                code="no-node",
                what=f"The Tandem in {home.folder} does not answer within {limit_s:g} s.",
                fix="Wait until it has started, end it, or use another home: --home DIR.",
                detail=str(error),
            ) from error
        except BaseException:
            if writer is not None:
                writer.close()
            raise
        return cls(reader, writer, state)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def submit(self, command: Command) -> Answer:
        self._number += 1
        number = self._number
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self._ended.is_set():
                return Refused(problem=self.problem or _closed())
            self._writer.write(json_lines.write_asked(number, command))
            async with asyncio.timeout(self.answer_limit_s):
                await self._writer.drain()
            return await self._answered(answer)
        except OSError as error:
            if isinstance(error, TimeoutError):
                return Refused(problem=_no_answer(self.answer_limit_s))
            return Refused(problem=self.problem or _closed())
        finally:
            del self._waiting[number]

    async def _answered(self, answer: asyncio.Future[Answer]) -> Answer:
        """Raises ``TimeoutError``, but not while a checkpoint is being fetched or files are being read."""
        while True:
            before = self.state.fetch, self.state.reading
            await _wait(answer, self.answer_limit_s)
            if answer.done():
                return answer.result()
            if (self.state.fetch, self.state.reading) == before:
                raise TimeoutError

    async def wait_closed(self) -> None:
        """Wait until the node has ended or the connection broke."""
        await self._ended.wait()

    async def close(self) -> None:
        await self._background.cancel()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                self._on_message(json_lines.read_message(line))
            if not self.state.stopped:
                self.problem = _closed()
        except OSError as error:
            self.problem = msgspec.structs.replace(_closed(), detail=str(error))
        except _FellBehind as error:
            self.problem = msgspec.structs.replace(_behind(), detail=str(error))
        except ValueError as error:
            _log.exception("the node sent something that this version does not understand")
            self.problem = msgspec.structs.replace(_differs(), detail=str(error))
        finally:
            self._ended.set()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result(Refused(problem=self.problem or _closed()))

    def _on_message(self, told: json_lines.NodeGreeting | json_lines.Replied | Event) -> None:
        match told:
            case json_lines.NodeGreeting():
                # A listener may be waiting for one of the missed events.
                raise _FellBehind(f"{told.missed} events were missed")
            case json_lines.Replied():
                waiting = self._waiting.get(told.id) if isinstance(told.id, int) else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(told.answer)
            case _:
                self.state = apply(self.state, told)
                for listener in tuple(self._listeners):
                    listener(told, self.state)


async def _wait(answer: asyncio.Future[Answer], limit_s: float) -> None:
    await asyncio.wait({answer}, timeout=limit_s)


def _greeted(line: bytes) -> State:
    """The state in the first line. Raises ``TandemError`` where it is another version's, or no node's."""
    try:
        told = json_lines.read_message(line)
    except ValueError as error:
        # Another version's state may not even be readable; its version number explains why.
        raise TandemError.of(msgspec.structs.replace(_differs(), detail=str(error))) from error
    if isinstance(told, json_lines.Replied) and isinstance(told.answer, Refused):
        raise TandemError.of(told.answer.problem)
    if not isinstance(told, json_lines.NodeGreeting) or told.vocabulary != VOCABULARY:
        raise TandemError.of(_differs())
    return told.state


def _closed() -> Problem:
    return Problem(
        code="node-gone",
        what="The Tandem that used this home has ended or was closed.",
        fix="Start it again.",
    )


def _behind() -> Problem:
    return Problem(
        code="fell-behind",
        what="This command was stopped for so long that it missed events.",
        fix="Start it again; the node itself goes on.",
    )


def _no_answer(limit_s: float) -> Problem:
    return Problem(
        code="no-answer",
        what=f"The Tandem that uses this home did not answer within {limit_s:g} s.",
        fix="See logs/tandem.log in its home; if it hangs, end it and start it again.",
    )


def _differs() -> Problem:
    return Problem(
        code="versions-differ",
        what=f"The Tandem that uses this home is not version {TANDEM} and sends other messages.",
        fix="End it and start it again, so that both are the same version.",
    )
