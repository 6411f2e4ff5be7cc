"""Owned background work: tasks of the loop, and a thread for blocking calls. Both are used from the loop."""

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
    """A task that fails with an exception goes to the log, and to ``on_crash(name, error)``."""

    def __init__(self, on_crash: Callable[[str, BaseException], None] | None = None) -> None:
        self._on_crash = on_crash
        self._tasks: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        """Number of tasks under way."""
        return len(self._tasks)

    def start(self, name: str, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_done, name))
        return task

    async def wait_idle(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def settle(self, limit_s: float) -> None:
        """Let tasks under way end within ``limit_s``; cancel the rest."""
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
        if (error := task.exception()) is not None and not isinstance(error, WorkerClosed):
            _log.error("%s failed", name, exc_info=error)
            if self._on_crash is not None:
                self._on_crash(name, error)


class WorkerClosed(Exception):
    """The worker thread accepts no more work: its owner is ending."""


class WorkerThread:
    """One thread for blocking work, done in order. ``name`` is the thread's.

    Raises ``WorkerClosed`` for new work after ``close``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._closed = False
        self._asked = self._done = 0

    @property
    def waiting(self) -> int:
        """Number of pending requests."""
        return self._asked - self._done

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` on the thread. Returns its result, or raises its exception."""
        return await asyncio.wrap_future(self._submit(partial(work, *args, **kwargs)))

    def post(self, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run ``work`` on the thread without waiting for it; its exceptions go to the log."""
        self._submit(partial(work, *args, **kwargs)).add_done_callback(_tell_log)

    async def close(self) -> None:
        """Close after all pending work."""
        await self.do(lambda: None)
        self._closed = True
        self._thread.shutdown(wait=False)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        if self._closed:
            raise WorkerClosed(self._name)
        within = contextvars.copy_context()  # it determines which log the work writes to
        self._asked += 1
        future = self._thread.submit(within.run, work)
        future.add_done_callback(self._on_done)
        return future

    def _on_done(self, _: Future[T]) -> None:
        """Called by the thread."""
        self._done += 1


def _tell_log(done: Future[object]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _log.error("background work failed", exc_info=error)


async def bounded(what: str, ending: Coroutine[object, object, None], limit_s: float) -> None:
    """Wait for ``ending``, at most ``limit_s``. Failures are logged under the name ``what``."""
    try:
        async with asyncio.timeout(limit_s):
            await ending
    except TimeoutError:
        _log.error("%s did not end within %g s", what, limit_s)
    except Exception:
        _log.exception("%s failed", what)
