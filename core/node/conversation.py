"""One conversation in JSON lines with a node, over any byte stream: a socket, or stdin and stdout."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from core.node import json_lines
from core.runtime.background import Background
from core.runtime.lines import Lines
from core.vocabulary.answers import Refused
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.node import NodeFace
from core.vocabulary.state import State

AT_ONCE = 64
"""Concurrent commands of one client."""
KEPT_BYTES = 8_000_000
"""Bytes queued for a slow reader; beyond that it gets the whole state again instead."""

Write = Callable[[bytes], Awaitable[None]]


class Conversation:
    """Answers one client and sends it every event, in order. Runs on the core loop."""

    def __init__(self, node: NodeFace, write: Write, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._node = node
        self._write = write
        self._kept_bytes = kept_bytes
        self._lines: deque[tuple[bool, bytes]] = deque()
        """Whether it is a reply, and the line."""
        self._waiting_bytes = 0
        """Total size of all lines."""
        self._missed = 0
        self._has_work = asyncio.Event()
        self._all_written = asyncio.Event()
        self._commands = Background()

    async def run(self, chunks: AsyncIterator[bytes], *, stay: bool = False) -> None:
        """Runs until ``chunks`` end and every command is answered; with ``stay`` it goes on sending events
        after that.

        Ends with the node, and silently when the other side no longer reads (``OSError`` from ``write``).
        """
        self._put(json_lines.write_greeting(self._node.state), reply=True)
        unsubscribe = self._node.subscribe(self._on_event)
        writer = asyncio.create_task(self._write_lines(), name="jsonl-write")
        reader = asyncio.create_task(self._read_commands(chunks, stay), name="jsonl-read")
        try:
            await asyncio.wait({writer, reader}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            unsubscribe()
            for task in (writer, reader):
                task.cancel()
            results = await asyncio.gather(writer, reader, return_exceptions=True)
            await self._commands.cancel()
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError):
                raise result

    async def _read_commands(self, chunks: AsyncIterator[bytes], stay: bool) -> None:
        lines = Lines(json_lines.MAX_LINE_BYTES, skip_rest=True)
        async for chunk in chunks:
            for line in lines.feed(chunk):
                self._on_line(line)
            if self._waiting_bytes >= self._kept_bytes:
                # Backpressure: stop reading until replies are drained.
                await self._all_written.wait()
        for line in lines.end():
            self._on_line(line)
        if stay:
            await asyncio.Event().wait()
        await self._commands.wait_idle()
        await self._all_written.wait()

    def _on_line(self, line: bytes) -> None:
        asked = json_lines.read_asked(line)
        if asked is None:
            return
        if isinstance(asked, json_lines.Replied):
            self._put(json_lines.write_reply(asked.id, asked.answer), reply=True)
        elif len(self._commands) >= AT_ONCE:
            busy = Problem(
                code="too-many-commands",
                what=f"{AT_ONCE} commands are already under way.",
                fix="Wait for their answers before sending more.",
            )
            self._put(json_lines.write_reply(asked.id, Refused(problem=busy)), reply=True)
        else:
            self._commands.start("a command in JSON lines", self._answer(asked.id, asked.command))

    async def _answer(self, number: json_lines.Id, command: Command) -> None:
        self._put(json_lines.write_reply(number, await self._node.submit(command)), reply=True)

    def _on_event(self, event: Event, state: State) -> None:
        if not self._missed and self._waiting_bytes < self._kept_bytes:
            self._put(json_lines.write_event(event), reply=False)
            return
        if not self._missed:
            replies = [line for line in self._lines if line[0]]
            self._missed = len(self._lines) - len(replies)
            self._lines = deque(replies)
            self._waiting_bytes = sum(len(line) for _, line in replies)
        self._missed += 1

    def _put(self, line: bytes, *, reply: bool) -> None:
        self._lines.append((reply, line))
        self._waiting_bytes += len(line)
        self._all_written.clear()
        self._has_work.set()

    async def _write_lines(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._lines or self._missed:
                if not self._lines:
                    greeting = json_lines.write_greeting(self._node.state, self._missed)
                    self._missed = 0
                    self._put(greeting, reply=True)
                _, line = self._lines.popleft()
                self._waiting_bytes -= len(line)
                await self._write(line)
            self._all_written.set()
            if self._node.state.stopped:
                return
