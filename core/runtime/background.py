"""Tasks that somebody owns: each has a name, crashes are reported, all are awaited at the end. Core loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Background:
    """A task that ends by an exception of its own goes to the log, and to ``on_crash(name, error)``."""

    def __init__(self, on_crash: Callable[[str, BaseException], None] | None = None) -> None:
        self._on_crash = on_crash
        self._tasks: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._tasks)

    def start(self, name: str, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_done, name))
        return task

    async def wait_idle(self) -> None:
        """Until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def settle(self, limit_s: float) -> None:
        """Let what is under way end by itself; what takes longer is cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limit_s)
        await self.cancel()

    async def cancel(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_done(self, name: str, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            _log.error("%s broke", name, exc_info=error)
            if self._on_crash is not None:
                self._on_crash(name, error)
