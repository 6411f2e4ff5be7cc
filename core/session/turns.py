"""Decides which thread reads a connection: its receiving thread, or one that waits for what arrives.

Waking another thread takes longer than reading a small message. So after a short wait the receiving thread
rests for a moment, and the next thread that waits reads itself, if it comes in time.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Self

from core.session.interface import Stream


class Arrivals:
    """What arrives over one connection, for one thread at a time. ``each``: reads on each ``next``, until
    something whole has arrived (True) or nothing came for a while (False); ends with the session."""

    def __init__(self, each: Iterator[bool], stream: Stream) -> None:
        self.error: BaseException | None = None
        self.is_over = False
        self._each, self._stream = each, stream
        self._patience_s = 0.0
        self._until_s: float | None = None

    def next(self, patience_s: float) -> bool:
        """Whether something arrived before ``patience_s`` of silence, and before the limit. Raises what
        reading raises."""
        if patience_s != self._patience_s:
            self._stream.limit_silence(patience_s)
            self._patience_s = patience_s
        came = next(self._each, None)
        self.is_over = came is None
        return bool(came)

    def limit(self, until_s: float | None) -> None:
        """Set the limit, a time of ``time.monotonic``; None: no limit."""
        if until_s != self._until_s:
            self._stream.limit(until_s)
            self._until_s = until_s


class _HeldInterrupts:
    """Delays Ctrl-C and Stop, which Python raises in the main thread: raised within a frame, they would break
    the connection, and lose the peer's last message."""

    def __init__(self) -> None:
        self.came = False
        self._handler: Any = None
        self._frame: FrameType | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._hold)
        return self

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self.came, self._frame = True, frame

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self.came:
                self._handler(signal.SIGINT, self._frame)


class ReadTurns:
    """Decides who reads. ``changed``: the session's lock. ``rest_s``: how long the receiving thread rests,
    and how long a waiting thread reads without receiving anything."""

    def __init__(self, changed: threading.Condition, rest_s: float) -> None:
        self._changed, self._rest_s = changed, rest_s
        self._has_come: Callable[[], bool] | None = None
        """Whether the awaited data has arrived; None: no short wait is under way."""
        self._rest_until_s = 0.0
        self._at_rest: Arrivals | None = None
        """Set while the receiving thread rests and others may read."""
        self.is_lent = False
        """Whether another thread reads."""

    def read(self, reading: Arrivals, patience_s: float, is_live: Callable[[], bool]) -> None:
        """Read until the end, except while others do. For the receiving thread. Raises what reading raises,
        in this thread or another."""
        while not reading.is_over:
            reading.next(patience_s)
            if self._is_restful():
                self._rest(reading, is_live)

    def _is_restful(self) -> bool:
        has_come = self._has_come
        if has_come is None:
            return time.monotonic() < self._rest_until_s
        if has_come():
            self._rest_until_s = time.monotonic() + self._rest_s
            return True
        return False

    def _rest(self, reading: Arrivals, is_live: Callable[[], bool]) -> None:
        with self._changed:
            self._at_rest = reading
            while self.is_lent or (is_live() and self._left_s() > 0):
                self._changed.wait(self._rest_s if self.is_lent else self._left_s())
            self._at_rest = None
        if reading.error is not None:
            raise reading.error

    def _left_s(self) -> float:
        return self._rest_until_s - time.monotonic()

    def take(self, has_come: Callable[[], bool], until_s: float | None = None) -> None:
        """Read until ``has_come()``, if the receiving thread rests; no longer than ``until_s``, by
        ``time.monotonic``. Returns early, and lets it read, when nothing arrives or reading fails. Call
        ``give_back`` once the wait is over."""
        with _HeldInterrupts() as held:
            with self._changed:
                self._has_come, reading = has_come, self._at_rest
                if reading is None or self.is_lent or has_come():
                    return
                self.is_lent = True
            try:
                reading.limit(until_s)
                while not (held.came or has_come()) and reading.next(self._rest_s):
                    pass
            except Exception as error:
                reading.error = error  # the receiving thread's to handle
            except BaseException:
                reading.error = ConnectionAbortedError("its reader was interrupted")  # perhaps within a frame
                raise
            finally:
                with self._changed:
                    self.is_lent = False
                    if reading.error or reading.is_over or not has_come():
                        self._wake()
                    reading.limit(None)

    def give_back(self) -> None:
        """A wait that began with ``take`` is over."""
        self._has_come, self._rest_until_s = None, time.monotonic() + self._rest_s

    def read_on(self) -> None:
        """Let the receiving thread read without rest, until the next ``take``."""
        with self._changed:
            self._has_come = None
            self._wake()

    def _wake(self) -> None:
        """Call with the lock held."""
        self._rest_until_s = 0.0
        if self._at_rest is not None:
            self._changed.notify_all()
