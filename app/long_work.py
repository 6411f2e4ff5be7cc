"""Long work that keeps the window responsive: in turns of the event loop, or in a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal


class Turns(QObject):
    """Runs the given pieces in order, one per turn of the event loop, on the GUI thread.

    Each piece must end within some milliseconds.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._pieces: deque[Callable[[], object]] = deque()
        self._under_way = False

    def then(self, *pieces: Callable[[], object]) -> None:
        """Append after the queued pieces."""
        self._pieces.extend(pieces)
        self._wake()

    def first(self, piece: Callable[[], object]) -> None:
        """Insert before the queued pieces."""
        self._pieces.appendleft(piece)
        self._wake()

    def _wake(self) -> None:
        if not self._under_way:
            self._under_way = True
            QTimer.singleShot(0, self, self._next)

    def _next(self) -> None:
        piece = self._pieces.popleft()
        try:
            piece()
        finally:
            if shiboken6.isValid(self):
                self._under_way = False
                if self._pieces:
                    self._wake()


T = TypeVar("T")


class _Job(QObject):
    _done = Signal(object)

    def __init__(self, owner: QObject, then: Callable[[Any], object]) -> None:
        super().__init__(owner)
        self._then = then
        self._done.connect(self._on_done, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], object]) -> None:
        result = work()
        with suppress(RuntimeError):  # the owner went meanwhile
            self._done.emit(result)

    def _on_done(self, result: object) -> None:
        self._then(result)
        self.deleteLater()


def in_thread(owner: QObject, work: Callable[[], T], then: Callable[[T], object]) -> threading.Thread:
    """Runs ``work``, which must not touch Qt, in its own thread; then calls ``then`` with its result on
    the GUI thread, if ``owner`` still lives. The thread ends with the program, wherever it is."""
    job = _Job(owner, then)
    thread = threading.Thread(target=job.run, args=(work,), name="job", daemon=True)
    thread.start()
    return thread
