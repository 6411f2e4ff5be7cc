"""Two processes that train together, each on a core of its own, round by round when they are asked."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from contextlib import ExitStack
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Self

from bench.wire.link import Link
from core.cluster.plan import Task
from core.cluster.roles import Role
from core.ids import DeviceId
from core.run.ports import hold_ports

LIMIT_S = 300.0
LAST_WORDS = 1500
MEMBERS = 2


class Pair:
    """``train`` trains and measures. Ends its processes on leaving.

    ``link``: what joins the two, else this machine's loopback. ``wire``: how Tandem's gradients travel.
    """

    def __init__(self, kind: str, work: str, *, link: Link | None = None, wire: str = "f32") -> None:
        self.kind = kind
        self._stack = ExitStack()
        workers = [link.place(rank) for rank in range(MEMBERS)] if link else _on_loopback()
        cores = sorted(os.sched_getaffinity(0))
        self._said: list[queue.Queue[str]] = []
        self._members: list[subprocess.Popen[str]] = []
        self._logs: list[IO[bytes]] = []
        for rank in range(MEMBERS):
            place = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            core = cores[rank % len(cores)]
            log = self._stack.enter_context(TemporaryFile())  # noqa: SIM115 (the stack is one)
            line = [sys.executable, "-m", "bench.engine.member", kind, work, str(rank), str(core), wire]
            member = subprocess.Popen(
                [*link.enter(rank), *line] if link else line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TF_CONFIG": json.dumps(place), "TF_CPP_MIN_LOG_LEVEL": "2"},
            )
            said: queue.Queue[str] = queue.Queue()
            threading.Thread(target=_listen, args=(member, said), daemon=True).start()
            self._logs.append(log)
            self._members.append(member)
            self._said.append(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            member.kill()
            member.wait()
        self._stack.close()

    def train(self, epochs: int) -> tuple[int, float]:
        """Steps, and the seconds of the slower member, as nobody is done before. The first time traces."""
        for member in self._members:
            assert member.stdin is not None
            member.stdin.write(f"{epochs}\n")
            member.stdin.flush()
        told = [self._one(rank) for rank in range(MEMBERS)]
        return told[0][0], max(seconds for _, seconds in told)

    def _one(self, rank: int) -> tuple[int, float]:
        try:
            line = self._said[rank].get(timeout=LIMIT_S)
        except queue.Empty:
            raise TimeoutError(f"{self.kind} member {rank} took longer than {LIMIT_S:g} s") from None
        if not line:
            raise RuntimeError(f"{self.kind} member {rank} ended: {self._last_words(rank)}")
        steps, seconds = line.split()
        return int(steps), float(seconds)

    def _last_words(self, rank: int) -> str:
        log = self._logs[rank]
        log.seek(0)
        return log.read().decode("utf-8", "replace")[-LAST_WORDS:]


def _on_loopback() -> list[str]:
    tasks = [Task(device=DeviceId(""), role=Role.WORKER, index=rank) for rank in range(MEMBERS)]
    held = hold_ports(tasks)
    places = [f"127.0.0.1:{held.ports[task.name]}" for task in tasks]
    held.release()
    return places


def _listen(member: subprocess.Popen[str], said: queue.Queue[str]) -> None:
    assert member.stdout is not None
    for line in member.stdout:
        said.put(line)
    said.put("")
