"""One thread for blocking work, done in the order in which it was asked for. Used from the core loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


class WorkerThread:
    """``name`` is the thread's."""

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
