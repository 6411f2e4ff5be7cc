"""Owns one trainer process: starts it, reads its output and reports, ends it. One background thread per run.

``start`` and ``stop`` may be called from any thread; callbacks run on the loop's thread. ``on_exit`` is
called exactly once, after the process and its group are gone and all of their output was passed on.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import psutil

from core.runtime.bounded_file import BoundedFile
from core.runtime.lines import Lines
from core.supervisor import memory_kills, pipe_ends, ports, problems, spawn, temporary
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.machine import Supervision
from core.supervisor.output import Batches
from core.supervisor.state import Effect, Force, Limits
from core.vocabulary import trainer_messages
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.progress import LogLines
from core.vocabulary.wire import to_json

_READ = 65536
_READ_REPORTS = 4096
"""Small enough that even the shortest reports need at most one pause."""
_LONGEST_REPORT = 1024 * 1024
REPORTS_S, REPORTS_AT_ONCE = 1_000.0, 10_000
"""Rate limit of a trainer's reports: its script can write to the same pipe, and the loop handles them all."""
OUTPUT_AT_ONCE = 64_000_000
"""Bytes read without a pause (``Limits.output_bytes_s``)."""
_LINE_BYTES = 100
"""Cost of a line, in bytes."""
LONGEST_PAUSE_S = 0.25
_STOPPED = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})
_log = logging.getLogger(__name__)
_REPORT: msgspec.json.Decoder[trainer_messages.Report] = msgspec.json.Decoder(trainer_messages.Report)


class _RateLimit:
    """Rate limit: ``rate_s`` a second sustained, ``at_once`` at once."""

    def __init__(self, rate_s: float, at_once: float) -> None:
        self._rate_s, self._at_once = rate_s, at_once
        self._owed, self._owed_at_s = 0.0, time.monotonic()

    def add(self, count: int) -> None:
        """Count these, and sleep if there were too many."""
        now_s = time.monotonic()
        paid = self._rate_s * (now_s - self._owed_at_s)
        most = self._at_once + self._rate_s * LONGEST_PAUSE_S  # the excess of a flood delays nothing any more
        self._owed, self._owed_at_s = min(max(0.0, self._owed - paid) + count, most), now_s
        if self._owed > self._at_once:
            time.sleep((self._owed - self._at_once) / self._rate_s)


class TrainerProcess:
    """``child``: one that was held warm; otherwise a new one is started. ``loop`` defaults to the running
    one."""

    def __init__(
        self,
        train: trainer_messages.Train,
        *,
        log_path: Path,
        on_report: Callable[[trainer_messages.Report], None],
        on_output: Callable[[LogLines], None],
        on_exit: Callable[[Exit], None],
        child: spawn.Child | None = None,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        loading: LoadingTimes | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._train = train
        self._log_path = log_path
        self._on_report = on_report
        self._on_output = on_output
        self._on_exit = on_exit
        self._child = child
        self._limits = limits
        self._loading = loading
        self._loop = loop or asyncio.get_running_loop()
        self._asked = _Requests()
        self._thread = threading.Thread(target=self._run, name=f"run {train.task}", daemon=True)

    def start(self) -> None:
        self._asked.open()
        self._thread.start()

    def stop(self, force: Force = 0) -> None:
        """Ask the trainer to end; see ``state.Force``. Does nothing after its end."""
        self._asked.ask(force)

    def order(self, order: trainer_messages.Order) -> None:
        """Send an order, unless the process has not started yet or has ended."""
        self._asked.ask(order)

    @property
    def pid(self) -> int | None:
        """The trainer's process id; None before it started."""
        return None if self._child is None else self._child.pid

    @property
    def is_stopped(self) -> bool:
        """Whether its process is stopped, by a signal or a debugger, and silent until it continues."""
        if self._child is None:
            return False
        try:
            return psutil.Process(self._child.pid).status() in _STOPPED
        except psutil.Error:
            return False

    @property
    def cpu_s(self) -> float:
        """Processor time of its process, in seconds."""
        if self._child is None:
            return 0.0
        try:
            used = psutil.Process(self._child.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(used.user + used.system)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the run thread, off the loop's thread. True once it ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # --- the run thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            exit = self._supervise()
        except TandemError as error:
            exit = Exit(reason="killed", problem=error.problem, shared=False)
        except Exception as error:  # Whatever broke here, the run must be told of an end.
            _log.exception("the supervision of %s failed", self._train.task)
            exit = Exit(reason="killed", problem=problems.supervision_broke(error), shared=False)
        finally:
            self._asked.close()
        self._post(self._on_exit, exit)

    def _supervise(self) -> Exit:
        before = memory_kills.counted()
        limits = self._limits
        if self._loading is not None:
            limits = replace(limits, boot_s=self._loading.limit_s())
        sealed, walls = self._train.seal is not None, self._train.walls
        self._child = child = self._child or spawn.spawn(sealed=sealed, walls=walls)
        supervision = Supervision(self._train, limits, time.monotonic())
        log = BoundedFile(self._log_path)
        try:
            watch = _ChildWatch(
                child,
                supervision,
                log,
                self._asked,
                self._limits.drain_s,
                self._pass_report,
                partial(self._post, self._on_output),
            )
            temporary.make(self._train.temporary)
            if child.warm:
                # The trainer reads nothing while TensorFlow loads.
                watch.order(spawn.beginning(sealed=sealed, walls=walls), limits.boot_s)
            watch.run()
            status, tail = watch.finish()
        finally:
            if child.leash >= 0:
                child.end()
            log.close()
            temporary.remove(self._train.temporary)
        if supervision.too_slow:
            self._keep_loading_time(limits.boot_s)
        memory = memory_kills.counted().more_than(before)
        return supervision.on_dead(status, memory=memory, tail=tail)

    def _pass_report(self, report: trainer_messages.Report) -> None:
        if isinstance(report, trainer_messages.Booted):
            self._keep_loading_time(report.seconds)
        self._post(self._on_report, report)

    def _keep_loading_time(self, seconds: float) -> None:
        if self._loading is not None:
            self._loading.add(seconds)

    def _post(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # The loop is closed: the node is gone, so the trainer must end too.
            self._asked.ask(2)


class _Requests:
    """Requests from any thread; a pipe wakes the run thread for them."""

    def __init__(self) -> None:
        self._asked: deque[Force | trainer_messages.Order] = deque()
        self._read = self._write = -1
        self._guard = threading.Lock()

    def open(self) -> None:
        self._read, self._write = pipe_ends.pair()
        pipe_ends.set_nonblocking(self._write)

    def close(self) -> None:
        with self._guard:
            pipe_ends.close(self._write)
            pipe_ends.close(self._read)
            self._write = -1

    def fileno(self) -> int:
        """Readable once there is a request."""
        return self._read

    def ask(self, what: Force | trainer_messages.Order) -> None:
        self._asked.append(what)
        with self._guard:
            if self._write >= 0:
                try:
                    pipe_ends.write(self._write, b"s")
                except BlockingIOError:
                    pass  # Woken often enough.

    def __bool__(self) -> bool:
        return bool(self._asked)

    def pop(self) -> Force | trainer_messages.Order:
        """The oldest request."""
        return self._asked.popleft()


class _ChildWatch:
    """One child's descriptors, watched until it is dead. Lives on the run thread."""

    def __init__(
        self,
        child: spawn.Child,
        supervision: Supervision,
        log: BoundedFile,
        asked: _Requests,
        drain_s: float,
        on_report: Callable[[trainer_messages.Report], None],
        on_output: Callable[[LogLines], None],
    ) -> None:
        self._child = child
        self._supervision = supervision
        self._log = log
        self._asked = asked
        self._drain_s = drain_s
        self._on_report = on_report
        self._on_output = on_output
        self._dead = False
        self._report_rate = _RateLimit(REPORTS_S, REPORTS_AT_ONCE)
        self._output_rate = _RateLimit(supervision.limits.output_bytes_s, OUTPUT_AT_ONCE)
        self._reports = Lines(_LONGEST_REPORT)
        self._lines = {"stdout": Lines(), "stderr": Lines()}
        self._batches = Batches(supervision.train.task)
        self._tail: deque[bytes] = deque(maxlen=40)
        self._selector = selectors.DefaultSelector()
        stdout, stderr = child.outputs
        self._open = {stdout: "stdout", stderr: "stderr", child.reports: "report"}
        for fd, what in self._open.items():
            pipe_ends.set_nonblocking(fd)
            self._selector.register(fd, selectors.EVENT_READ, what)
        self._selector.register(asked.fileno(), selectors.EVENT_READ, "wake")
        pipe_ends.set_nonblocking(child.orders)
        self._death = child.watch_death()
        self._selector.register(self._death, selectors.EVENT_READ, "death")

    def run(self) -> None:
        """Runs until the process is dead. Its exit status is not fetched yet, to keep the group's id
        reserved."""
        while not self._dead:
            for key, _ in self._selector.select(self._timeout_s()):
                self._on_ready(key.fd, key.data)
            while self._asked:
                match self._asked.pop():
                    case (0 | 1 | 2) as force:
                        self._do(self._supervision.on_stop(force, time.monotonic()))
                    case order:
                        if self._supervision.booted:
                            self.order(order)
            self._do(self._supervision.on_time(time.monotonic()))
            self._pass_on()

    def finish(self) -> tuple[int, str]:
        """Kill the rest of the group and drain the pipes. Returns the status and the tail of stderr."""
        self._child.signal(spawn.KILL)
        for fd in (self._asked.fileno(), self._death):
            self._selector.unregister(fd)
        pipe_ends.close(self._death)
        until_s = time.monotonic() + self._drain_s
        while self._open and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                self._on_ready(key.fd, key.data)
            self._pass_on()
        for stream, lines in self._lines.items():
            self._batches.add(stream, lines.end())
        self._pass_on(last=True)
        self._selector.close()
        tail = b"\n".join(self._tail).decode("utf-8", "replace")
        return self._child.reap(), tail

    def _timeout_s(self) -> float | None:
        if self._asked:
            return 0.0
        due = [at for at in (self._supervision.deadline_s, self._batches.due_s) if at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _on_ready(self, fd: int, what: str) -> None:
        if what == "death":
            self._dead = True
            return
        try:
            data = pipe_ends.read(fd, _READ_REPORTS if what == "report" else _READ)
        except BlockingIOError:
            return
        if what == "wake":
            return
        if not data:
            self._selector.unregister(fd)
            del self._open[fd]
        elif what == "report":
            lines = self._reports.feed(data)
            for line in filter(None, lines):  # an empty line was for `WarmTrainer`
                self._read_report(line)
            # A normal trainer's reports wait in its own queue, and delay no step.
            self._report_rate.add(len(lines))
        else:
            self._log.write(data)
            lines = self._lines[what].feed(data)
            if what == "stderr":
                self._tail.extend(lines)
            if self._supervision.booted:  # Earlier output is TensorFlow's: only the log has it.
                self._batches.add(what, lines)
            self._output_rate.add(len(data) + _LINE_BYTES * len(lines))

    def _read_report(self, line: bytes) -> None:
        try:
            report = _REPORT.decode(line)
        except msgspec.DecodeError:
            self._log.write(b"[tandem] not a report: " + line[:500] + b"\n")
            return
        self._do(self._supervision.on_report(report, time.monotonic()))
        if not isinstance(report, trainer_messages.Ended):
            self._on_report(report)

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case "train":
                    self.order(self._supervision.train)
                case "stop":
                    self.order(trainer_messages.Stop())
                case "terminate":
                    self._child.signal(signal.SIGTERM)
                case "kill":
                    self._child.signal(spawn.KILL)
                case "try-peers":
                    peers, limit_s = self._supervision.train.peers, self._supervision.limits.probe_s
                    self._supervision.on_answers(ports.try_peers(peers, limit_s))

    def order(self, order: trainer_messages.Order, limit_s: float | None = None) -> None:
        """End a trainer that does not accept an order within seconds: a healthy one always reads."""
        data = to_json(order) + b"\n"
        until_s = time.monotonic() + (limit_s or self._supervision.limits.terminate_s)
        with selectors.DefaultSelector() as writable:
            writable.register(self._child.orders, selectors.EVENT_WRITE)
            while data:
                if not writable.select(max(0.0, until_s - time.monotonic())):
                    self._child.signal(spawn.KILL)
                    return
                try:
                    data = data[pipe_ends.write(self._child.orders, data) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return  # The trainer died, which is handled next.

    def _pass_on(self, *, last: bool = False) -> None:
        if words := self._log.trouble():
            lines = LogLines(task=self._supervision.train.task, stream="tandem", text=words)
            self._on_output(lines)
        for batch in self._batches.pop_due(time.monotonic(), all_of_it=last):
            self._on_output(batch)
