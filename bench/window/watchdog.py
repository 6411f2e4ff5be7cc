"""Notices when the GUI thread's event loop is late, and what the thread was doing then."""

from __future__ import annotations

import faulthandler
import re
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
from PySide6.QtCore import QObject, Qt, QTimer

TICK_MS = 5
SUSPECT_S = 0.03
BUSY_S = 0.012
LOOK_S = 0.005
LOOKS = 12
KEPT = 16
DEPTH = 12
_PLACE = re.compile(r'File "([^"]*)", line (\d+) in (\S+)')


class Gap(msgspec.Struct, frozen=True):
    """``seconds`` between two turns of the event loop; ``cpu_s`` of them this thread was computing, and
    ``queued_s`` it was ready, but the machine ran others (reported by Linux; 0 elsewhere)."""

    seconds: float
    cpu_s: float
    queued_s: float = 0.0
    looks: tuple[tuple[str, ...], ...] = ()
    """Stacks sampled every few milliseconds while it was late; the innermost place first."""
    during: str = ""
    """The activity that the measurement had named (``Watchdog.during``)."""


class Watchdog(QObject):
    """Lives on the GUI thread: a timer ticks there, and another thread samples what makes it late."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.during = ""
        self._longest: list[Gap] = []
        self._busiest: list[Gap] = []
        self._gui = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._gui)
        self._looks: list[tuple[str, ...]] = []
        self._schedule = _own_schedule()
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the window)
        self._watching = threading.Event()
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self.begin()
        threading.Thread(target=self._look, name="watchdog", daemon=True).start()

    def begin(self) -> None:
        self._longest, self._busiest = [], []
        self._last_s, self._last_cpu_s, self._last_queued_s = self._now()
        self._timer.start()
        self._watching.set()

    def end(self) -> list[Gap]:
        """The longest gaps since ``begin`` and those with the most CPU time. Costs nothing until the next
        ``begin``."""
        self._tick()
        self._timer.stop()
        self._watching.clear()
        gaps = [*self._longest, *(gap for gap in self._busiest if gap not in self._longest)]
        self._longest, self._busiest = [], []
        return gaps

    def _tick(self) -> None:
        now_s, cpu_s, queued_s = self._now()
        looks, self._looks = self._looks, []
        gap = Gap(
            seconds=now_s - self._last_s,
            cpu_s=cpu_s - self._last_cpu_s,
            queued_s=queued_s - self._last_queued_s,
            looks=tuple(looks),
            during=self.during,
        )
        self._last_s, self._last_cpu_s, self._last_queued_s = now_s, cpu_s, queued_s
        _keep(self._longest, gap, lambda gap: gap.seconds)
        _keep(self._busiest, gap, lambda gap: gap.cpu_s)

    def _now(self) -> tuple[float, float, float]:
        queued_s = 0.0
        if self._schedule is not None:
            self._schedule.seek(0)
            queued_s = int(self._schedule.read().split()[1]) / 1e9
        return time.monotonic(), time.thread_time(), queued_s

    def _look(self) -> None:
        while self._watching.wait():
            time.sleep(LOOK_S)
            late = time.monotonic() - self._last_s > SUSPECT_S
            busy = time.clock_gettime(self._clock) - self._last_cpu_s > BUSY_S
            if (late or busy) and len(self._looks) < LOOKS:
                self._looks.append(self._places())

    def _places(self) -> tuple[str, ...]:
        # A frame held by this thread would keep its painter alive past the painting, which crashes Qt:
        # faulthandler only reads.
        self._stacks.seek(0)
        self._stacks.truncate()
        faulthandler.dump_traceback(self._stacks, all_threads=True)
        self._stacks.seek(0)
        text = self._stacks.read().decode("utf-8", "replace")
        _, _, stack = text.partition(f"0x{self._gui:016x} ")
        found = _PLACE.findall(stack.partition("\n\n")[0])[:DEPTH]
        return tuple(f"{'/'.join(path.split('/')[-2:])}:{line} {name}" for path, line, name in found)


def _own_schedule() -> IO[bytes] | None:
    """The kernel's statistics of this thread: nanoseconds on a processor, nanoseconds queued for one."""
    try:
        return Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").open("rb", buffering=0)
    except OSError:
        return None


def _keep(gaps: list[Gap], gap: Gap, size: Callable[[Gap], float]) -> None:
    """Keeps the ``KEPT`` largest gaps, the largest first."""
    if len(gaps) < KEPT or size(gap) > size(gaps[-1]):
        gaps.append(gap)
        gaps.sort(key=size, reverse=True)
        del gaps[KEPT:]
