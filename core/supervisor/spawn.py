"""Starts a trainer process: its command line, its environment, its pipes. Imports no TensorFlow."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from core.supervisor import kinship, parent_death, pipe_ends, pumps
from core.supervisor.job_object import JobObject
from core.vocabulary.errors import TandemError
from core.vocabulary.trainer_messages import Become, Enclosure
from core.vocabulary.versions import ROOT, is_frozen
from core.vocabulary.wire import to_json
from core.walls import enclosure

NICE = 10
"""The default increment of `nice`: under contention, about a tenth of an ordinary program's time."""

HIDDEN_ARGUMENT = "--trainer-process"
"""First argument that turns Tandem into a trainer: ``core.trainer.__main__.run(rest)``."""

SEALED_ARGUMENT = "--sealed"
"""Follows ``HIDDEN_ARGUMENT`` for a sealed trainer."""

WALLS_ARGUMENT = "--walls"
"""The same for walls: an ``Enclosure`` as JSON follows."""

WARM_ARGUMENT = "--warm"
"""The same for a trainer that is kept ready: it loads TensorFlow, then waits for ``Become``."""

PROBE_ARGUMENT = "--tensorflow-probe"
"""First argument that turns Tandem into ``core.trainer.probe``."""

SEAL_ARGUMENT = "--seal-trial"
"""First argument that makes a frozen program try to enter a network of its own."""

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
    # Hashes of strings in sets: `list(set(words))` must give the same vocabulary on all members. A warm
    # trainer knows no run yet, so it is one number for all.
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8:backslashreplace",
}
_CHANNELS = ("--orders", "--reports", "--leash")
ONE_THREAD = "OPENBLAS_NUM_THREADS"
"""Environment: NumPy's library would otherwise start its threads while it is loaded."""
BACKEND_ASKED = "TANDEM_KERAS_BACKEND_ASKED"
"""Environment: the node's original KERAS_BACKEND, so that a trainer can report that it uses TensorFlow."""
_LEFT_OUT = (
    *("TF_CONFIG", "TF_CONFIG_CLUSTER", "TF_CONFIG_TASK_TYPE", "TF_CONFIG_TASK_INDEX"),
    *("PYTHONSTARTUP", "PYTHONINSPECT"),
)
_FOLDERS = ("PYTHONPATH", "PYTHONUSERBASE", "HOME")
"""Python runs ``sitecustomize``, ``usercustomize`` and ``*.pth`` from these before a script's first line. A
relative folder would be inside the project for every program that a script starts."""


KILL: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no process can refuse, as is any signal on Windows."""


LOADED = b"\n"
"""An empty report: a trainer that is kept ready has loaded TensorFlow."""


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
    """Its stdout, stderr and death, where `pumps` carries them to sockets."""
    job: JobObject | None = None
    warm: bool = False
    """The trainer waits for ``Become``."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group: processes that the script started end with it. Call before ``reap``."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        elif self.job is not None:
            self.job.end()
        else:
            self.process.kill()

    @property
    def outputs(self) -> tuple[int, int]:
        """Its stdout and stderr, for reading."""
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
        kinship.on_end(self.pid)
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
        """Kill and reap at once."""
        self.signal(KILL)
        return self.reap()

    def pump(self) -> None:
        """Make its pipes waitable on systems that can wait only for sockets."""
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
    """The command that starts this Tandem again; a subcommand or a hidden argument follows."""
    return [sys.executable] if is_frozen() else [sys.executable, "-m", "tandem_laptops"]


def command() -> list[str]:
    """The program that becomes a trainer; the fds follow as ``--orders N --reports N --leash N``."""
    return [*program(), HIDDEN_ARGUMENT]


def environment() -> dict[str, str]:
    """The node's own environment, with quiet TensorFlow and no buffering; TF_CONFIG comes with the order.

    Security invariant: Python in a trainer, or in a program that its script starts, never runs a project's
    file just because of its name.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    for name in _FOLDERS:
        folders = [folder for folder in kept.pop(name, "").split(os.pathsep) if Path(folder).is_absolute()]
        if folders:
            kept[name] = os.pathsep.join(folders)
    asked = {BACKEND_ASKED: kept["KERAS_BACKEND"]} if "KERAS_BACKEND" in kept else {}
    return {**_DEFAULTS, **kept, **_FIXED, **asked}


def needs_pumps() -> bool:
    """Whether pipes cannot be waited for on this system."""
    return sys.platform == "win32"


def spawn(*, sealed: bool = False, walls: Enclosure | None = None) -> Child:
    """Start a trainer that imports TensorFlow and then waits for its order. Raises ``TandemError``.

    ``sealed``: in a network of its own (``core.trainer.sealed``). ``walls``: see ``core.walls``.
    """
    return _start(_surroundings(walls), options(sealed=sealed, walls=walls))


def spawn_warm() -> Child:
    """Start a trainer that imports TensorFlow and then waits for ``Become``. Raises ``TandemError``.

    Security invariant: its memory and /proc/PID/environ hold no more of the user's data than a walled
    trainer's, since it may become one.
    """
    given = environment()
    kept = enclosure.computing_variables(given) | {name: given[name] for name in ("HOME",) if name in given}
    if sys.platform == "linux":
        kept[ONE_THREAD] = "1"
    child = _start(kept, [WARM_ARGUMENT])
    child.warm = True
    return child


def beginning(*, sealed: bool = False, walls: Enclosure | None = None) -> Become:
    """The setup for a warm trainer, equal to what ``spawn`` would do. Raises ``TandemError``."""
    return Become(environment=packed(_surroundings(walls)), sealed=sealed, walls=walls)


def packed(variables: dict[str, str]) -> tuple[bytes, ...]:
    """``NAME=value`` of each."""
    return tuple(os.fsencode(f"{name}={value}") for name, value in variables.items())


def unpacked(variables: Sequence[bytes]) -> dict[str, str]:
    """The inverse of ``packed``."""
    pairs = (os.fsdecode(each).partition("=") for each in variables)
    return {name: value for name, _, value in pairs}


def channels(numbers: Sequence[int]) -> list[str]:
    """A trainer's command-line arguments for its orders, reports and leash."""
    return [str(word) for pair in zip(_CHANNELS, numbers, strict=True) for word in pair]


def options(*, sealed: bool, walls: Enclosure | None) -> list[str]:
    """The arguments after ``channels`` for a trainer that is started for one run."""
    words = [SEALED_ARGUMENT] if sealed else []
    return words + ([WALLS_ARGUMENT, to_json(walls).decode()] if walls is not None else [])


def _surroundings(walls: Enclosure | None) -> dict[str, str]:
    if walls is None:
        return environment()
    try:
        enclosure.prepare(walls)
    except OSError as error:
        raise _not_started(error) from error
    return enclosure.environment(walls, environment())


def _start(surroundings: dict[str, str], words: list[str]) -> Child:
    orders_read, orders_write = os.pipe()
    reports_read, reports_write = os.pipe()
    leash_read, leash_write = os.pipe()
    theirs = (orders_read, reports_write, leash_read)
    numbers, inherited = pipe_ends.handed_on(theirs)
    try:
        process = subprocess.Popen(
            command() + channels(numbers) + words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # `-m` searches the working directory first: it must be ours, never a script's folder.
            cwd=ROOT if ROOT.is_dir() else None,
            env=surroundings,
            **inherited,
        )
    except OSError as error:
        for fd in (orders_write, reports_read, leash_write):
            os.close(fd)
        raise _not_started(error) from error
    finally:
        for fd in theirs:
            os.close(fd)
    kinship.on_start(process.pid)
    lower_priority(process.pid)
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


def _not_started(error: OSError) -> TandemError:
    return TandemError(
        code="trainer-not-started",
        what=f"The trainer process could not be started: {error.strerror or error}.",
        fix="Close other programs and try again; `tandem doctor` says what is missing.",
    )


def lower_priority(pid: int) -> None:
    """Call before the process has threads: each inherits its creator's priority."""
    with contextlib.suppress(OSError, psutil.Error):
        process = psutil.Process(pid)
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            process.nice(min(19, process.nice() + NICE))
    if sys.platform == "linux":
        # The scheduler treats a session as a group, and weighs groups first:
        # https://man7.org/linux/man-pages/man7/sched.7.html, "The autogroup feature".
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(NICE))
