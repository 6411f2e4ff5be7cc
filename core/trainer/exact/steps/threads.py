"""Admits one thread of a script at a time: members' threads may run in different orders, and meet wrongly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.vocabulary.errors import TandemError


class OneThread:
    """The thread whose call of ``fit``, ``train_on_batch`` or the like is under way."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._calls: list[str] = []

    @contextmanager
    def calls(self, kind: str, name: Callable[[], str]) -> Iterator[None]:
        """Wraps a call. ``name()``: the name of the outermost call under way, for messages, or "".

        Raises TandemError during another thread's call.
        """
        if not self._lock.acquire(blocking=False):
            running = name() or next(iter(self._calls), "another call")
            raise TandemError(
                code="two-threads",
                what=f"The script calls {kind} in one thread while {running} runs in another.",
                fix="Call one after the other; only predict may run during a training.",
            )
        self._calls.append(kind)
        try:
            yield
        finally:
            self._calls.pop()
            self._lock.release()
