"""Keeps the waits of one machine with a clock. On the core loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from core.run.waits import Wait


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """What of an event loop a run needs to know the time; tests have one that they move themselves."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer: ...


class Waits:
    """``on_over(wait)`` is called when one runs out; beginning it anew begins its time anew."""

    def __init__(self, clock: Clock, on_over: Callable[[Wait], None]) -> None:
        self._clock = clock
        self._on_over = on_over
        self._timers: dict[Wait, Timer] = {}

    def begin(self, wait: Wait, seconds: float) -> None:
        self.end(wait)
        self._timers[wait] = self._clock.call_later(seconds, partial(self._over, wait))

    def end(self, wait: Wait) -> None:
        if timer := self._timers.pop(wait, None):
            timer.cancel()

    def end_all(self) -> None:
        for wait in tuple(self._timers):
            self.end(wait)

    def _over(self, wait: Wait) -> None:
        del self._timers[wait]
        self._on_over(wait)
