"""Long work on the GUI thread in pieces, each in a turn of the event loop of its own: the window lives in
between. A piece that makes very many widgets takes breath where they are made."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import shiboken6
from PySide6.QtCore import QCoreApplication, QEventLoop, QObject, QTimer

BITE_S = 0.010
_making = False
_last_s = 0.0


class Turns(QObject):
    """Does what it was given in order, one piece a turn."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._pieces: deque[Callable[[], object]] = deque()
        self._under_way = False

    def then(self, *pieces: Callable[[], object]) -> None:
        """After what is there already."""
        self._pieces.extend(pieces)
        self._wake()

    def first(self, piece: Callable[[], object]) -> None:
        """Before what is there already."""
        self._pieces.appendleft(piece)
        self._wake()

    def _wake(self) -> None:
        if not self._under_way:
            self._under_way = True
            QTimer.singleShot(0, self, self._next)

    def _next(self) -> None:
        global _making, _last_s
        piece = self._pieces.popleft()
        _making, _last_s = True, time.perf_counter()
        try:
            piece()
        finally:
            _making = False
            if shiboken6.isValid(self):
                self._under_way = False
                if self._pieces:
                    self._wake()


def take_breath() -> None:
    """Called wherever a widget is made that many are made of. Does nothing but within a piece of ``Turns``,
    and not within what is handled meanwhile: only what nobody has yet may stand half made."""
    global _making, _last_s
    if _making and time.perf_counter() - _last_s > BITE_S:
        _making = False
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents)
        _making, _last_s = True, time.perf_counter()
