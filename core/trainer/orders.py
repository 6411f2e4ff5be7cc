"""Reads the node's orders: first the run, then perhaps Stop. On a thread of its own."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable

import msgspec

from core.vocabulary.trainer_messages import Order, Stop, Train

# Made at import: later, the script's own modules may stand where the types' annotations are looked up.
_ORDER: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)

if sys.platform == "win32":
    import msvcrt


class Orders:
    """``wait_train`` once, then ``follow``."""

    def __init__(self, fd: int) -> None:
        self._lines = io.BufferedReader(io.FileIO(fd, "rb"))
        self.stop_asked = threading.Event()

    def wait_train(self) -> Train | None:
        """None: the pipe closed, or Stop came first."""
        line = self._lines.readline()
        order = _ORDER.decode(line) if line else None
        if isinstance(order, Train):
            return order
        self._lines.close()
        return None

    def follow(self, on_stop: Callable[[], None]) -> threading.Thread:
        """``on_stop`` is called once, on a thread of its own, which ends with the pipe."""
        thread = threading.Thread(target=self._follow, args=(on_stop,), name="orders", daemon=True)
        thread.start()
        return thread

    def _follow(self, on_stop: Callable[[], None]) -> None:
        while line := self._lines.readline():
            if isinstance(_ORDER.decode(line), Stop) and not self.stop_asked.is_set():
                self.stop_asked.set()
                on_stop()
        self._lines.close()


def own(number: int) -> int:
    """The descriptor of what was handed on, for this process alone: programs of the script do not inherit it.

    ``number``: as `pipe_ends.handed_on` gave it.
    """
    if sys.platform == "win32":
        os.set_handle_inheritable(number, False)
        number = msvcrt.open_osfhandle(number, 0)
    else:
        os.set_inheritable(number, False)
    return number


def left_to_the_parent(trainer: int) -> Callable[[int, object], None]:
    """For SIGTERM, which the parent turns into an order. Processes that the script forks end by it, as pools
    expect."""

    def on_sigterm(number: int, frame: object) -> None:
        if os.getpid() != trainer:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return on_sigterm
