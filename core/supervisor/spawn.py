"""Starts a trainer process: its command line, its environment, its pipes. Imports no TensorFlow."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

import core
from core.supervisor import parent_death, pipe_ends, pumps
from core.supervisor.job_object import JobObject
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import is_frozen

NICE = 10
"""What `nice` adds by default: about a tenth of an ordinary program's time where both want all there is."""

HIDDEN_ARGUMENT = "--trainer-process"
"""First argument with which Tandem becomes a trainer: ``core.trainer.__main__.run(rest)``."""

SEALED_ARGUMENT = "--sealed"
"""Follows ``HIDDEN_ARGUMENT`` where the trainer is to be sealed."""

PROBE_ARGUMENT = "--tensorflow-probe"
"""First argument with which Tandem becomes ``core.trainer.probe``."""

SEAL_ARGUMENT = "--seal-trial"
"""First argument with which a frozen program tries to enter a network of its own."""

TENSORBOARD_ARGUMENT = "--tensorboard-process"
"""First argument with which a frozen program becomes TensorBoard."""

HOUSE = Path(core.__file__).resolve().parent.parent
"""The folder that ``core`` lies in."""

_DEFAULTS = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "GRPC_VERBOSITY": "ERROR",
    # A run shares the GPU with the screen, and two nodes may share one laptop.
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    # A script that plots has no screen here.
    "MPLBACKEND": "Agg",
}
_FIXED = {
    "KERAS_BACKEND": "tensorflow",
    # Of strings in sets: `list(set(words))` is to be the same vocabulary on all members. A trainer that is
    # kept ready knows no run yet, so it is one number for all.
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8:backslashreplace",
}
_CHANNELS = ("--orders", "--reports", "--leash")
BACKEND_ASKED = "TANDEM_KERAS_BACKEND_ASKED"
"""Environment: what KERAS_BACKEND was for the node, so that a trainer can say that it is on TensorFlow."""
_LEFT_OUT = (
    *("TF_CONFIG", "TF_CONFIG_CLUSTER", "TF_CONFIG_TASK_TYPE", "TF_CONFIG_TASK_INDEX"),
    *("PYTHONSTARTUP", "PYTHONINSPECT"),
)
_FOLDERS = ("PYTHONPATH", "PYTHONUSERBASE", "HOME")
"""Where Python looks as it starts: for ``sitecustomize``, ``usercustomize`` and ``*.pth``, before a script's
first line. A relative folder in these is one of the project's for whatever a script starts."""


KILL: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)
"""What no process can refuse. On Windows any signal is that."""


@dataclass(slots=True)
class Child:
    """A started trainer and the node's ends of its pipes. Leads its own session and process group, or job."""

    process: subprocess.Popen[bytes]
    orders: int
    reports: int
    leash: int
    started_s: float
    """``time.monotonic`` of the start."""
    pumped: tuple[int, int, int] | None = None
    """Its stdout, stderr and death, where they are carried to sockets (`pumps`)."""
    job: JobObject | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """To the whole group: processes that the script started end with it. Call before ``reap``."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        elif self.job is not None:
            self.job.end()
        else:
            self.process.kill()

    @property
    def outputs(self) -> tuple[int, int]:
        """Its stdout and stderr, to be read."""
        if self.pumped is not None:
            return self.pumped[:2]
        assert self.process.stdout is not None and self.process.stderr is not None
        return self.process.stdout.fileno(), self.process.stderr.fileno()

    def watch_death(self) -> int:
        """A descriptor that becomes readable once it is dead. The caller closes it."""
        return parent_death.watch_death(self.pid) if self.pumped is None else self.pumped[2]

    def reap(self) -> int:
        """Wait for the ended process and close everything. Returns its exit status as Popen gives it."""
        status = self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        for fd in () if self.pumped is None else self.pumped[:2]:
            pipe_ends.close(fd)
        for name in ("orders", "reports"):
            if (fd := getattr(self, name)) >= 0:
                pipe_ends.close(fd)
                setattr(self, name, -1)
        if self.leash >= 0:
            os.close(self.leash)
            self.leash = -1
        if self.job is not None:
            self.job.close()
        return status

    def end(self) -> int:
        """Kill and reap: at once."""
        self.signal(KILL)
        return self.reap()

    def pump(self) -> None:
        """Make its pipes fit to be waited for where only sockets can be."""
        streams = {"stdout": self.process.stdout, "stderr": self.process.stderr}
        fds = []
        for name, stream in streams.items():
            assert stream is not None
            fds.append(pumps.from_pipe(os.dup(stream.fileno()), name))
            stream.close()
        self.orders = pumps.to_pipe(self.orders, "orders")
        self.reports = pumps.from_pipe(self.reports, "reports")
        self.pumped = (fds[0], fds[1], pumps.death_of(self.process))


def program() -> list[str]:
    """What starts this Tandem once more; a subcommand or a hidden argument follows."""
    return [sys.executable] if is_frozen() else [sys.executable, "-m", "tandem_laptops"]


def command() -> list[str]:
    """The program that becomes a trainer; the fds follow as ``--orders N --reports N --leash N``."""
    return [*program(), HIDDEN_ARGUMENT]


def environment() -> dict[str, str]:
    """The node's own, quiet TensorFlow, no buffering; TF_CONFIG comes with the order.

    Security invariant: neither a trainer nor what its script starts has Python run a file of the project for
    its name alone.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    for name in _FOLDERS:
        folders = [folder for folder in kept.pop(name, "").split(os.pathsep) if Path(folder).is_absolute()]
        if folders:
            kept[name] = os.pathsep.join(folders)
    asked = {BACKEND_ASKED: kept["KERAS_BACKEND"]} if "KERAS_BACKEND" in kept else {}
    return {**_DEFAULTS, **kept, **_FIXED, **asked}


def needs_pumps() -> bool:
    """Whether pipes cannot be waited for here."""
    return sys.platform == "win32"


def spawn(*, sealed: bool = False) -> Child:
    """Start a trainer that imports TensorFlow and then waits for its order. Raises ``TandemError``.

    ``sealed``: in a network of its own (``core.trainer.sealed``).
    """
    orders_read, orders_write = os.pipe()
    reports_read, reports_write = os.pipe()
    leash_read, leash_write = os.pipe()
    theirs = (orders_read, reports_write, leash_read)
    numbers, options = pipe_ends.handed_on(theirs)
    words = [str(word) for pair in zip(_CHANNELS, numbers, strict=True) for word in pair]
    words += [SEALED_ARGUMENT] if sealed else []
    try:
        process = subprocess.Popen(
            command() + words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # `-m` looks into the working directory first: it must be ours, never a script's folder.
            cwd=HOUSE if HOUSE.is_dir() else None,
            env=environment(),
            **options,
        )
    except OSError as error:
        for fd in (orders_write, reports_read, leash_write):
            os.close(fd)
        raise TandemError(
            code="trainer-not-started",
            what=f"The trainer process could not be started: {error.strerror or error}.",
            fix="Close other programs and try again; `tandem doctor` says what is missing.",
        ) from error
    finally:
        for fd in theirs:
            os.close(fd)
    step_back(process.pid)
    child = Child(
        process=process,
        orders=orders_write,
        reports=reports_read,
        leash=leash_write,
        started_s=time.monotonic(),
    )
    if sys.platform == "win32":
        with contextlib.suppress(OSError):  # The leash still ends it, once the interpreter's lock is free.
            child.job = JobObject(process.pid)
    if needs_pumps():
        child.pump()
    return child


def step_back(pid: int) -> None:
    """Call before the process has threads: each begins with the priority of the one that made it."""
    with contextlib.suppress(OSError, psutil.Error):
        process = psutil.Process(pid)
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            process.nice(min(19, process.nice() + NICE))
    if sys.platform == "linux":
        # A session of its own is a group of its own to the scheduler, and groups are weighed first:
        # https://man7.org/linux/man-pages/man7/sched.7.html, "The autogroup feature".
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(NICE))
