"""How the demo tells what happens: each line with its seconds since the beginning."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.cli.screen import Screen

Say = Callable[[str], None]


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._began_s


def timed(screen: Screen, clock: Clock) -> Say:
    def say(line: str) -> None:
        screen.say(f"{clock():6.1f} s  {line}")

    return say
