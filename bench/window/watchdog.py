"""Notices when the GUI thread does not come round, and what it was doing then."""

from __future__ import annotations

import faulthandler
import re
import tempfile
import threading
import time

import msgspec
from PySide6.QtCore import QObject, Qt, QTimer

TICK_MS = 5
SUSPECT_S = 0.03
KEPT = 8
DEPTH = 6
_PLACE = re.compile(r'File "([^"]*)", line (\d+) in (\S+)')


class Gap(msgspec.Struct, frozen=True, order=True):
    """``seconds`` between two turns of the event loop; ``cpu_s`` of them this thread was computing."""

    seconds: float
    cpu_s: float
    doing: tuple[str, ...] = ()
    """The innermost places in the code when it was late; the innermost first."""


class Watchdog(QObject):
    """Lives on the GUI thread: a timer ticks there, another thread looks what holds it up when it is late."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._gaps: list[Gap] = []
        self._gui = threading.get_ident()
        self._seen: tuple[str, ...] = ()
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the window)
        self._watching = threading.Event()
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self.begin()
        threading.Thread(target=self._look, name="watchdog", daemon=True).start()

    def begin(self) -> None:
        self._gaps = []
        self._last_s, self._last_cpu_s = time.monotonic(), time.thread_time()
        self._timer.start()
        self._watching.set()

    def end(self) -> list[Gap]:
        """The longest gaps since ``begin``, longest first. Until the next ``begin`` it costs nothing."""
        self._timer.stop()
        self._watching.clear()
        gaps, self._gaps = self._gaps, []
        return gaps

    def _tick(self) -> None:
        now_s, cpu_s = time.monotonic(), time.thread_time()
        gap_s = now_s - self._last_s
        seen, self._seen = self._seen, ()
        gap = Gap(gap_s, cpu_s - self._last_cpu_s, seen if gap_s > SUSPECT_S else ())
        self._last_s, self._last_cpu_s = now_s, cpu_s
        if len(self._gaps) < KEPT or gap > self._gaps[-1]:
            self._gaps = sorted([*self._gaps, gap], reverse=True)[:KEPT]

    def _look(self) -> None:
        while self._watching.wait():
            time.sleep(SUSPECT_S / 3)
            if time.monotonic() - self._last_s > SUSPECT_S and not self._seen:
                self._seen = self._places()

    def _places(self) -> tuple[str, ...]:
        # A frame held by this thread would keep its painter alive past the painting, which Qt does not bear:
        # faulthandler only reads.
        self._stacks.seek(0)
        self._stacks.truncate()
        faulthandler.dump_traceback(self._stacks, all_threads=True)
        self._stacks.seek(0)
        text = self._stacks.read().decode("utf-8", "replace")
        _, _, stack = text.partition(f"0x{self._gui:016x} ")
        found = _PLACE.findall(stack.partition("\n\n")[0])[:DEPTH]
        return tuple(f"{'/'.join(path.split('/')[-2:])}:{line} {name}" for path, line, name in found)
