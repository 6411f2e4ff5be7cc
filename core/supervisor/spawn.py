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
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import is_frozen

NICE = 10
"""What `nice` adds by default: about a tenth of an ordinary program's time where both want all there is."""

HIDDEN_ARGUMENT = "--trainer-process"
"""First argument with which Tandem becomes a trainer: ``core.trainer.__main__.run(rest)``."""

PROBE_ARGUMENT = "--tensorflow-probe"
"""First argument with which Tandem becomes ``core.trainer.probe``."""

TENSORBOARD_ARGUMENT = "--tensorboard-process"
"""First argument with which a frozen program becomes TensorBoard."""

_HOUSE = Path(core.__file__).resolve().parent.parent

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
_LEFT_OUT = (
    *("TF_CONFIG", "TF_CONFIG_CLUSTER", "TF_CONFIG_TASK_TYPE", "TF_CONFIG_TASK_INDEX"),
    *("PYTHONSTARTUP", "PYTHONINSPECT"),
)


@dataclass(slots=True)
class Child:
    """A started trainer and the node's ends of its pipes. Leads its own session and process group."""

    process: subprocess.Popen[bytes]
    orders: int
    reports: int
    leash: int
    started_s: float
    """``time.monotonic`` of the start."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """To the whole group: processes that the script started end with it. Call before ``reap``."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def reap(self) -> int:
        """Wait for the ended process and close everything. Returns its exit status as Popen gives it."""
        status = self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        for name in ("orders", "reports", "leash"):
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)
        return status

    def end(self) -> int:
        """Kill and reap: at once."""
        self.signal(signal.SIGKILL)
        return self.reap()


def program() -> list[str]:
    """What starts this Tandem once more; a subcommand or a hidden argument follows."""
    return [sys.executable] if is_frozen() else [sys.executable, "-m", "tandem_laptops"]


def command() -> list[str]:
    """The program that becomes a trainer; the fds follow as ``--orders N --reports N --leash N``."""
    return [*program(), HIDDEN_ARGUMENT]


def environment() -> dict[str, str]:
    """The node's own, quiet TensorFlow, no buffering; TF_CONFIG comes with the order."""
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    return {**_DEFAULTS, **kept, **_FIXED}


def spawn() -> Child:
    """Start a trainer that imports TensorFlow and then waits for its order. Raises ``TandemError``."""
    if sys.platform == "win32":
        raise TandemError(
            code="no-trainer-here",
            what="Tandem cannot train on Windows yet: the trainer's pipes are made for Linux and macOS.",
            fix="Run Tandem inside WSL2; there TensorFlow can use the graphics card, too.",
        )
    orders_read, orders_write = os.pipe()
    reports_read, reports_write = os.pipe()
    leash_read, leash_write = os.pipe()
    theirs = (orders_read, reports_write, leash_read)
    fds = ["--orders", str(orders_read), "--reports", str(reports_write), "--leash", str(leash_read)]
    try:
        process = subprocess.Popen(
            command() + fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # `-m` looks into the working directory first: it must be ours, never a script's folder.
            cwd=_HOUSE if _HOUSE.is_dir() else None,
            env=environment(),
            pass_fds=theirs,
            start_new_session=True,
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
    return Child(
        process=process,
        orders=orders_write,
        reports=reports_read,
        leash=leash_write,
        started_s=time.monotonic(),
    )


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
