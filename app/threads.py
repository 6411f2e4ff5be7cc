"""Work beside the GUI thread, whose result comes back to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

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


def in_thread(owner: QObject, work: Callable[[], T], then: Callable[[T], object]) -> None:
    """``work`` in a thread of its own, which must touch nothing of Qt; then ``then`` with what it returned,
    on the GUI thread, if ``owner`` still lives."""
    job = _Job(owner, then)
    threading.Thread(target=job.run, args=(work,), name="job", daemon=True).start()
