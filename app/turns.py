"""Long work on the GUI thread in pieces, each in a turn of the event loop of its own: the window lives in
between."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import shiboken6
from PySide6.QtCore import QObject, QTimer


class Turns(QObject):
    """Does what it was given in order, one piece a turn. Each piece must end within some milliseconds."""

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
        piece = self._pieces.popleft()
        try:
            piece()
        finally:
            if shiboken6.isValid(self):
                self._under_way = False
                if self._pieces:
                    self._wake()
