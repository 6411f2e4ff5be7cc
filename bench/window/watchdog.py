"""Notices when the GUI thread does not come round, and what it was doing then."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from types import FrameType

import msgspec
from PySide6.QtCore import QObject, Qt, QTimer

TICK_MS = 5
SUSPECT_S = 0.03
KEPT = 8
DEPTH = 6


class Gap(msgspec.Struct, frozen=True, order=True):
    """``seconds`` between two turns of the event loop; ``cpu_s`` of them this thread was computing."""

    seconds: float
    cpu_s: float
    doing: tuple[str, ...] = ()
    """The innermost places in the code when it was late; from the outside in."""


class Watchdog(QObject):
    """Lives on the GUI thread: a timer ticks there, another thread looks what holds it up when it is late."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.gaps: list[Gap] = []
        self._gui = threading.get_ident()
        self._last_s = time.monotonic()
        self._last_cpu_s = time.thread_time()
        self._seen: tuple[str, ...] = ()
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        threading.Thread(target=self._look, name="watchdog", daemon=True).start()

    def take(self) -> list[Gap]:
        """The longest gaps since the last call, longest first."""
        gaps, self.gaps = self.gaps, []
        return gaps

    def _tick(self) -> None:
        now_s, cpu_s = time.monotonic(), time.thread_time()
        gap_s = now_s - self._last_s
        seen, self._seen = self._seen, ()
        gap = Gap(gap_s, cpu_s - self._last_cpu_s, seen if gap_s > SUSPECT_S else ())
        self._last_s, self._last_cpu_s = now_s, cpu_s
        if len(self.gaps) < KEPT or gap > self.gaps[-1]:
            self.gaps = sorted([*self.gaps, gap], reverse=True)[:KEPT]

    def _look(self) -> None:
        while True:
            time.sleep(SUSPECT_S / 3)
            if time.monotonic() - self._last_s > SUSPECT_S and not self._seen:
                frame = sys._current_frames().get(self._gui)
                if frame is not None:
                    self._seen = _places(frame)


def _places(frame: FrameType) -> tuple[str, ...]:
    stack = traceback.extract_stack(frame, limit=None)[-DEPTH:]
    return tuple(f"{'/'.join(place.filename.split('/')[-2:])}:{place.lineno} {place.name}" for place in stack)
