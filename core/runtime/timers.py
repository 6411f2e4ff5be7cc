"""Named timers: machines request them, drivers run them with a clock. On the core loop."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

Name = TypeVar("Name", bound=str)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """The clock of an event loop; tests advance theirs by hand."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer: ...


class LaptopClock:
    """The running loop's timers, with a time that includes the laptop's sleep where the system counts it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def time(self) -> float:
        now_s = self._loop.time()
        if sys.platform != "win32":
            # Linux' CLOCK_MONOTONIC stops in sleep, macOS' does not: clock_gettime(2) of each.
            now_s = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
        return now_s

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        return self._loop.call_later(delay, callback)


@dataclass(frozen=True, slots=True)
class SetTimer(Generic[Name]):
    """Start a timer, or restart it."""

    name: Name
    seconds: float


@dataclass(frozen=True, slots=True)
class CancelTimer(Generic[Name]):
    name: Name


@dataclass(frozen=True, slots=True)
class TimerFired(Generic[Name]):
    """A machine's event: a timer ran out."""

    name: Name


class Timers(Generic[Name]):
    """``on_fired(name)`` is called when a timer runs out. Setting a running one restarts it."""

    def __init__(self, clock: Clock, on_fired: Callable[[Name], None]) -> None:
        self._clock = clock
        self._on_fired = on_fired
        self._timers: dict[Name, Timer] = {}

    def __contains__(self, name: Name) -> bool:
        """Whether a timer of this name is running."""
        return name in self._timers

    def set(self, name: Name, seconds: float) -> None:
        self.cancel(name)
        self._timers[name] = self._clock.call_later(seconds, partial(self._fire, name))

    def cancel(self, name: Name) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def cancel_all(self) -> None:
        for name in tuple(self._timers):
            self.cancel(name)

    def _fire(self, name: Name) -> None:
        del self._timers[name]
        self._on_fired(name)
