"""A trainer without a process: the test works the child's ends of its pipes."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import cast

import msgspec

from core.supervisor import spawn
from core.vocabulary import trainer_messages
from core.vocabulary.wire import to_json


class _FakePopen:
    pid = 1 << 30  # of no process

    def __init__(self, stdout: int, stderr: int) -> None:
        self.stdout, self.stderr = os.fdopen(stdout, "rb", 0), os.fdopen(stderr, "rb", 0)
        self.status: int | None = None

    def poll(self) -> int | None:
        return self.status

    def wait(self) -> int:
        assert self.status is not None
        return self.status


class FakeChild(spawn.Child):
    """Dies of SIGKILL, and of SIGTERM unless ``deaf``."""

    def __init__(self, *, deaf: bool = False, warm: bool = False) -> None:
        self.deaf = deaf
        self.signals: list[signal.Signals] = []
        self.reaped = False
        stdout, self.own_stdout = os.pipe()
        stderr, self.own_stderr = os.pipe()
        self.own_orders, orders = os.pipe()
        reports, self.own_reports = os.pipe()
        self.death, self._dying = os.pipe()
        leash = os.dup(self.own_orders)
        self.fake = _FakePopen(stdout, stderr)
        super().__init__(
            process=cast("subprocess.Popen[bytes]", self.fake),
            orders=orders,
            reports=reports,
            leash=leash,
            started_s=0.0,
            warm=warm,
        )

    def say(self, *reports: trainer_messages.Report) -> None:
        for report in reports:
            os.write(self.own_reports, to_json(report) + b"\n")

    def orders_given(self) -> list[trainer_messages.Order]:
        """Unread orders."""
        os.set_blocking(self.own_orders, False)
        try:
            lines = os.read(self.own_orders, 1 << 20).splitlines()
        except BlockingIOError:
            return []
        return [msgspec.json.decode(line, type=trainer_messages.Order) for line in lines]

    def write(self, data: bytes, *, stderr: bool = False) -> None:
        os.write(self.own_stderr if stderr else self.own_stdout, data)

    def die(self, status: int = 0, *, leaves_pipes_open: bool = False) -> None:
        if self.fake.status is None:
            self.fake.status = status
            kept = (self.own_stdout, self.own_stderr) if leaves_pipes_open else ()
            for fd in (self.own_stdout, self.own_stderr, self.own_reports):
                if fd not in kept:
                    os.close(fd)
            os.write(self._dying, b"d")

    def signal(self, number: signal.Signals) -> None:
        self.signals.append(number)
        if number == signal.SIGKILL or not self.deaf:
            self.die(-number)

    def reap(self) -> int:
        self.reaped = True
        os.close(self._dying)
        os.close(self.own_orders)
        return super().reap()
