"""Reads the node's orders: ``Become`` if this trainer was kept ready, ``Train``, and then, on a thread of its
own, ``MeetWithout`` and ``Stop``."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

import msgspec

from core.vocabulary.trainer_messages import Become, MeetWithout, Order, Stop, Train

# Created at import: later, the script's modules may hide those in which the annotations are looked up.
_ORDER: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)

_First = TypeVar("_First", Become, Train)

if sys.platform == "win32":
    import msvcrt


class Orders:
    """Call ``wait_begin`` if kept ready, before any second thread; ``wait_train`` once; then ``follow``."""

    def __init__(self, fd: int) -> None:
        self._lines = io.BufferedReader(io.FileIO(fd, "rb"))
        self.stop_asked = threading.Event()
        self.leave_asked = threading.Event()

    def wait_begin(self) -> Become | None:
        """The order that sets up this process; None if the pipe closed."""
        return self._first(Become)

    def wait_train(self) -> Train | None:
        """The run to train; None if the pipe closed, or Stop came first."""
        return self._first(Train)

    def _first(self, kind: type[_First]) -> _First | None:
        line = self._lines.readline()
        order = _ORDER.decode(line) if line else None
        if isinstance(order, kind):
            return order
        self._lines.close()
        return None

    def follow(
        self, on_stop: Callable[[], None], on_members_left: Callable[[MeetWithout], None] | None = None
    ) -> threading.Thread:
        """Calls ``on_stop`` once, and ``on_members_left`` whenever members have left, on a thread that ends
        with the pipe."""
        args = (on_stop, on_members_left)
        thread = threading.Thread(target=self._follow, args=args, name="orders", daemon=True)
        thread.start()
        return thread

    def _follow(
        self, on_stop: Callable[[], None], on_members_left: Callable[[MeetWithout], None] | None
    ) -> None:
        while line := self._lines.readline():
            order = _ORDER.decode(line)
            if isinstance(order, Stop) and order.leaves:
                self.leave_asked.set()
            elif isinstance(order, Stop) and not self.stop_asked.is_set():
                self.stop_asked.set()
                on_stop()
            elif isinstance(order, MeetWithout) and on_members_left is not None:
                on_members_left(order)
        self._lines.close()


def claim(number: int) -> int:
    """Makes an inherited descriptor this process's own: programs that the script starts do not inherit it.

    ``number``: from ``pipe_ends.handed_on``.
    """
    if sys.platform == "win32":
        os.set_handle_inheritable(number, False)
        number = msvcrt.open_osfhandle(number, 0)
    else:
        os.set_inheritable(number, False)
    return number


def leave_sigterm_to_parent(trainer: int) -> Callable[[int, object], None]:
    """A SIGTERM handler that does nothing in the process ``trainer``: its parent sends an order instead.

    Processes that the script forks end on the signal, as pools expect.
    """

    def on_sigterm(number: int, frame: object) -> None:
        if os.getpid() != trainer:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return on_sigterm


def interrupt_main() -> None:
    """Like Ctrl-C in a terminal."""
    main = threading.main_thread().ident
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)  # Python's handler runs on the main thread, wherever it was raised
    elif main is not None:
        signal.pthread_kill(main, signal.SIGINT)
