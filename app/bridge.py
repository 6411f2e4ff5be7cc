"""The only boundary between Qt and core: events arrive as one signal, commands leave with a callback.

``Bridge`` lives on the GUI thread. The core thread only calls ``deliver`` and ``answer``, which take a lock
briefly and wake the GUI thread once, however many events pile up meanwhile. A run's numbers and log lines
come faster than anybody reads: alone, they wake it once a second, which leaves the time to the training.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from core.vocabulary.answers import Answer
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event, MemberEndedEpoch, MemberLogged, MemberProgressed, TelemetryReported
from core.vocabulary.state import State

OFTEN = (MemberProgressed, MemberEndedEpoch, MemberLogged, TelemetryReported)
"""Events that come in streams: up to ten a second from each member."""
BETWEEN_S = 1.0
"""Seconds between two batches of these."""
OnAnswer = Callable[[Answer], None]


class Core(Protocol):
    """Carries commands to a node: the core thread, or a fake in tests."""

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Returns at once; ``on_answer`` is called from any thread."""


class Bridge(QObject):
    """``changed(events, state)``: a batch of events in order, and the state after the last one.

    ``opened(own)``: a node is available; ``own``: it ends with this process. ``failed(problem)``: there is no
    node any more. ``ended``: the core thread is about to finish.
    """

    changed = Signal(tuple, object)
    opened = Signal(bool)
    failed = Signal(object)
    ended = Signal()
    _woken = Signal()
    _woken_soon = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.between_s = BETWEEN_S
        self.state = State()
        self.own = True
        """The last value from ``opened``."""
        self._core: Core | None = None
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._newest = State()
        self._later: list[Callable[[], object]] = []
        """Deferred calls, run in order after the events that came before them."""
        self._waiting: list[tuple[Command, OnAnswer]] = []
        self._own: bool | None = None
        """Set for a node that has just begun."""
        self._asleep = True
        self._soon_asked = False
        self._last_s = 0.0
        self._soon = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._soon.timeout.connect(self._flush)
        self._woken.connect(self._flush, Qt.ConnectionType.QueuedConnection)
        self._woken_soon.connect(self._flush_soon, Qt.ConnectionType.QueuedConnection)

    # --- GUI thread ----------------------------------------------------------------------------------------

    def attach(self, core: Core) -> None:
        """Send commands to ``core`` from now on; those submitted earlier go first."""
        self._core = core
        waiting, self._waiting = self._waiting, []
        for command, on_answer in waiting:
            self.submit(command, on_answer)

    def submit(self, command: Command, on_answer: OnAnswer | None = None) -> None:
        """Gives a command to the node. ``on_answer`` is called on the GUI thread."""
        callback = on_answer or _ignore
        if self._core is None:
            self._waiting.append((command, callback))
        else:
            self._core.submit(command, lambda answer: self.answer(callback, answer))

    def _flush_soon(self) -> None:
        """Flush immediately after a pause, else ``between_s`` after the last flush."""
        wait_s = self._last_s + self.between_s - time.monotonic()
        self._soon.start(max(0, round(1000 * wait_s)))

    def _flush(self) -> None:
        self._soon.stop()
        self._last_s = time.monotonic()
        with self._lock:
            events, self._events = tuple(self._events), []
            later, self._later = self._later, []
            self.state = self._newest
            own, self._own = self._own, None
            self._asleep, self._soon_asked = True, False
        if own is not None:
            self.own = own
            self.opened.emit(own)
        if events or own is not None:
            self.changed.emit(events, self.state)
        for do in later:
            do()

    # --- core thread ---------------------------------------------------------------------------------------

    def begin(self, state: State, own: bool = True) -> None:
        """The node is ready; ``changed`` comes with no events and this state."""
        with self._lock:
            self._newest = state
            self._own = own
            self._wake()

    def fail(self, problem: Problem) -> None:
        """The node could not start, or failed: ``failed`` follows on the GUI thread."""
        self._do(lambda: self.failed.emit(problem))

    def end(self) -> None:
        """The core thread ends: ``ended`` follows on the GUI thread."""
        self._do(self.ended.emit)

    def deliver(self, event: Event, state: State) -> None:
        with self._lock:
            self._events.append(event)
            self._newest = state
            if isinstance(event, OFTEN):
                self._wake_soon()
            else:
                self._wake()

    def answer(self, callback: OnAnswer, answer: Answer) -> None:
        self._do(lambda: callback(answer) if _asker_lives(callback) else None)

    def _do(self, what: Callable[[], object]) -> None:
        with self._lock:
            self._later.append(what)
            self._wake()

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            self._woken.emit()

    def _wake_soon(self) -> None:
        if self._asleep and not self._soon_asked:
            self._soon_asked = True
            self._woken_soon.emit()


def _asker_lives(callback: OnAnswer) -> bool:
    """A screen may be gone before its answer comes, for example if the first steps are skipped while the
    doctor runs."""
    asker = getattr(callback, "__self__", None)
    return not isinstance(asker, QObject) or shiboken6.isValid(asker)


def _ignore(answer: Answer) -> None:
    """Callers that want no answer follow the events instead."""
