"""SIGINT, SIGTERM and SIGHUP end the window. GUI thread; nothing polls."""

from __future__ import annotations

import contextlib
import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal


class EndingSignals(QObject):
    """``came``: a terminal (Ctrl-C) or the system (True) asks the program to end.

    Python only notes a signal while Qt's loop runs in C; the byte it writes to ``set_wakeup_fd`` wakes the
    loop.
    """

    came = Signal(bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ours, pythons = socket.socketpair()
        self._pythons = pythons
        for end in (self._ours, pythons):
            end.setblocking(False)
        signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda number, frame: None)
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_woken)

    def _on_woken(self) -> None:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = self._ours.recv(64)
        self.came.emit(any(number != signal.SIGINT for number in numbers))
