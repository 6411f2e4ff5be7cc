"""Sends reports to the node without delaying a step: a queue, and a thread that writes it to the pipe."""

from __future__ import annotations

import os
import threading
from collections import deque

from core.vocabulary.progress import Progress
from core.vocabulary.trainer_messages import Progressed, Report
from core.vocabulary.wire import to_json


class Reporter:
    """Sends all reports in order, except steps: if the pipe is full, only the newest waits."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._ready = threading.Condition()
        self._queue: deque[Report] = deque()
        self._progress: Progress | None = None
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
        """Waits until everything is written; False after ``limit_s``. Call before holding the interpreter's
        lock for long, or exiting."""
        with self._ready:
            self._queue_progress()
            self._ready.notify_all()
            return self._ready.wait_for(lambda: self._gone or not (self._queue or self._writing), limit_s)

    def _queue_progress(self) -> None:
        if self._progress is not None:
            self._queue.append(Progressed(progress=self._progress))
            self._progress = None

    def _run(self) -> None:
        while not self._gone:
            self._write(self._wait_reports())

    def _wait_reports(self) -> bytes:
        with self._ready:
            while not (self._queue or self._progress):
                self._ready.wait()
            self._queue_progress()
            data = b"".join(to_json(report) + b"\n" for report in self._queue)
            self._queue.clear()
            self._writing = True
            return data

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:  # Nobody reads any longer: the leash ends this process, or the script closed the fd.
            self._gone = True
        with self._ready:
            self._writing = False
            self._ready.notify_all()
