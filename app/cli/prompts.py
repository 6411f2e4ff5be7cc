"""Questions to the person at the terminal. Only input typed after a question answers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping
from typing import Self, TypeVar

from app.cli.screen import Screen
from core.runtime.lines import Lines
from core.vocabulary.text import plain

T = TypeVar("T")
LONGEST_ANSWER = 4096


class Asker:
    """Reads lines from ``source`` (stdin's chunks) while entered."""

    def __init__(self, screen: Screen, source: AsyncIterable[bytes]) -> None:
        self._screen = screen
        self._source = source
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read(), name="asker")
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def ask(self, question: str, choices: Mapping[str, T]) -> T | None:
        """The chosen value, by a word of ``choices`` or its first letter; None if nobody can answer."""
        while not self._lines.empty():
            # Typed before the question appeared, so it can't be meant for it.
            if self._lines.get_nowait() is None:
                self._ended = True
        words = "/".join(choices)
        self._screen.say(f"{question} [{words}]")
        while not self._ended:
            line = await self._lines.get()
            if line is None:
                break
            typed = line.strip().casefold()
            fitting = [choices[word] for word in choices if typed and word.startswith(typed)]
            if len(fitting) == 1:
                return fitting[0]
            self._screen.say(f"{plain(line, 40)!r} is not an answer. Type one of: {', '.join(choices)}")
        self._ended = True
        return None

    async def _read(self) -> None:
        lines = Lines(LONGEST_ANSWER, skip_rest=True)
        async for chunk in self._source:
            for line in lines.feed(chunk):
                self._lines.put_nowait(line.decode("utf-8", "replace"))
        self._lines.put_nowait(None)
