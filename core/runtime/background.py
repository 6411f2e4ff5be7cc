"""Work that somebody owns: tasks of the loop, and a thread for what blocks. Both are used from the loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
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


class WorkerThread:
    """One thread for blocking work, done in the order in which it was asked for. ``name`` is the thread's."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result, or what it raises."""
        within = contextvars.copy_context()  # whose log it writes to
        return await asyncio.wrap_future(self._thread.submit(within.run, partial(work, *args, **kwargs)))

    def post(self, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Nobody waits for it; what it raises goes to the log."""
        within = contextvars.copy_context()
        self._thread.submit(within.run, partial(work, *args, **kwargs)).add_done_callback(_tell_log)

    async def close(self) -> None:
        """After everything that was asked for."""
        await self.do(lambda: None)
        self._thread.shutdown(wait=False)


def _tell_log(done: Future[object]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _log.error("work in the background broke", exc_info=error)
