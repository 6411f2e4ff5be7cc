"""Sends reports to the node without holding up a step: a queue, and a thread that writes it to the pipe."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from core.vocabulary.progress import Progress
from core.vocabulary.trainer_messages import Progressed, Report
from core.vocabulary.wire import to_json

PROGRESS_EVERY_S = 0.1


class Reporter:
    """Progress goes out at most ten times a second, the newest wins; every other report goes, in order."""

    def __init__(self, fd: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fd = fd
        self._clock = clock
        self._ready = threading.Condition()
        self._queue: deque[Report] = deque()
        self._progress: Progress | None = None
        self._next_s = 0.0
        self._writing = False
        self._gone = False
        threading.Thread(target=self._run, name="reports", daemon=True).start()

    def send(self, report: Report) -> None:
        with self._ready:
            self._queue_progress()
            self._queue.append(report)
            self._ready.notify_all()

    def progress(self, progress: Progress) -> None:
        with self._ready:
            self._progress = progress
            self._ready.notify_all()

    def flush(self, limit_s: float) -> bool:
        """Wait until everything is written: before the interpreter's lock is taken for long, or the end."""
        with self._ready:
            self._queue_progress()
            self._ready.notify_all()
            return self._ready.wait_for(lambda: self._gone or not (self._queue or self._writing), limit_s)

    def _queue_progress(self) -> None:
        if self._progress is not None:
            self._queue.append(Progressed(progress=self._progress))
            self._progress = None
            self._next_s = self._clock() + PROGRESS_EVERY_S

    def _run(self) -> None:
        while not self._gone:
            self._write(self._wait_reports())

    def _wait_reports(self) -> bytes:
        with self._ready:
            while not self._queue:
                if self._progress is None:
                    self._ready.wait()
                elif (left_s := self._next_s - self._clock()) > 0:
                    self._ready.wait(left_s)
                else:
                    self._queue_progress()
            data = b"".join(to_json(report) + b"\n" for report in self._queue)
            self._queue.clear()
            self._writing = True
            return data

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:  # Nobody reads any more: the leash ends this process, or the script closed the fd.
            self._gone = True
        with self._ready:
            self._writing = False
            self._ready.notify_all()
