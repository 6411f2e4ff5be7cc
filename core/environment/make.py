"""Makes an environment from its recipe. A marker file keeps a half-made one from passing for complete.

Blocks for minutes: use a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from core.environment import problems
from core.environment.recipe import CONSTRAINTS, PACKAGES, Recipe, WantedVersions, variables
from core.home.lock import HomeLock
from core.supervisor.spawn import KILL
from core.vocabulary.errors import TandemError

MARK = "making.lock"
"""Marker file of an incomplete folder: written first, removed last.

The maker and each of its commands hold a lock on it; an unlocked one was left behind.
"""
LIMIT_S = 3 * 3600.0
"""Limit of each step: a slow network may take an hour for TensorFlow."""
TRY_LIMIT_S = 120.0
_KEPT_LINES = 200
_TALK = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8:replace",
    "NO_COLOR": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off"}


def version_output(recipe: Recipe, limit_s: float = TRY_LIMIT_S) -> str:
    """The output of the environment's ``tandem --version``; ``""`` if there is no environment yet.

    Raises ``TandemError`` if the folder contains something else, or another Tandem is making it.
    """
    folder = recipe.folder
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return ""
        if (folder / MARK).exists():
            _hold(folder).release()
            return ""
    except OSError as error:
        raise TandemError.of(problems.unwritable(folder, error)) from error
    said = _version(recipe, limit_s)
    if not has(said, recipe.wanted):
        raise TandemError.of(problems.taken(folder, said or "it does not start"))
    return said


def has(said: str, wanted: WantedVersions) -> bool:
    """Whether the output of ``tandem --version`` has the wanted versions."""
    named = set(re.split(r"[(),\s]*[(),][(),\s]*", said.strip()))
    return named.issuperset(wanted.named)


class Making:
    """Makes one environment. ``told`` is called with each line of the commands' output, on the thread of
    ``run``. Call ``stop`` from any thread."""

    def __init__(self, recipe: Recipe, told: Callable[[str], object], limit_s: float = LIMIT_S) -> None:
        self._recipe = recipe
        self._told = told
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._mark: HomeLock | None = None
        self._child: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> str:
        """Make the environment. Returns the new Tandem's ``--version`` output; ``""`` if it was stopped.

        A half-made environment is made anew. Raises ``TandemError``. On failure, and if it was stopped, the
        folder is removed again.
        """
        recipe = self._recipe
        if said := version_output(recipe):
            return said
        free = _free_bytes(recipe.folder)
        if free < recipe.disk_bytes:
            raise TandemError.of(problems.no_space(recipe.folder, recipe.disk_bytes))
        try:
            with _claimed(recipe.folder) as self._mark:
                (recipe.folder / CONSTRAINTS).write_text(recipe.constraints, encoding="utf-8")
                (recipe.folder / PACKAGES).write_text(recipe.packages, encoding="utf-8")
                for step in recipe.steps:
                    self._told(f"{step.words}: {step}")
                    self._do(step.words, step.command, self._limit_s)
                lines = self._do("Starting it", (str(recipe.tandem), "--version"), TRY_LIMIT_S)
                said = next((line for line in lines if has(line, recipe.wanted)), "")
                if not said:
                    raise TandemError.of(problems.not_as_wanted(str(recipe.wanted), " ".join(lines)))
        except _Stopped:
            return ""
        except OSError as error:
            raise TandemError.of(problems.unwritable(recipe.folder, error)) from error
        return said

    def stop(self) -> None:
        """Make ``run`` end within moments, and remove what it made."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                _end(self._child.pid)

    def _do(self, words: str, command: tuple[str, ...], limit_s: float) -> deque[str]:
        """Run a command. Returns the last lines of its output."""
        assert self._mark is not None
        with self._lock:
            if self._stopped:
                raise _Stopped
            try:
                self._child = child = _start(command, self._recipe.folder, self._mark.descriptors)
            except OSError as error:
                raise TandemError.of(problems.not_started(words, command[0], error)) from error
        late = threading.Event()

        def end_late() -> None:
            late.set()
            _end(child.pid)

        limit = threading.Timer(limit_s, end_late)
        limit.daemon = True
        limit.start()
        lines: deque[str] = deque(maxlen=_KEPT_LINES)
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if line := line.rstrip():
                    lines.append(line)
                    self._told(line)
            status = child.wait()
        finally:
            limit.cancel()
            with self._lock:
                self._child = None
            if child.poll() is None:
                _end(child.pid)
                child.wait()
            if child.stdout is not None:
                child.stdout.close()
        if self._stopped:
            raise _Stopped
        if late.is_set():
            raise TandemError.of(problems.too_long(words, limit_s))
        if status != 0:
            python = self._recipe.wanted.python
            folder, source = self._recipe.folder, self._recipe.source
            raise TandemError.of(problems.failed(words, tuple(lines), python, folder, source))
        return lines


class _Stopped(Exception):
    pass


@contextmanager
def _claimed(folder: Path) -> Iterator[HomeLock]:
    """Empties the folder except for the marker. Afterwards removes the marker, or on failure the folder.

    If this process is killed halfway, the marker remains, so the folder never passes for complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = _hold(folder)
    try:
        _clear(folder)
        yield mark
    except BaseException:
        with suppress(OSError):  # leftovers stay marked, and the next try removes them
            _clear(folder)
            _unmark(folder, mark)
            _remove(folder)
        raise
    else:
        _unmark(folder, mark)
    finally:
        mark.release()


def _hold(folder: Path) -> HomeLock:
    mark = folder / MARK
    try:
        held = HomeLock.acquire(mark)
    except TandemError as error:
        if error.code == "home-held":
            raise TandemError.of(problems.under_way(folder)) from error
        if isinstance(error.__cause__, OSError):
            raise TandemError.of(problems.unwritable(folder, error.__cause__)) from error
        raise
    if held.descriptors and not _is_open(mark, *held.descriptors):  # its last holder has just removed it
        held.release()
        raise TandemError.of(problems.under_way(folder))
    return held


def _is_open(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _unmark(folder: Path, mark: HomeLock) -> None:
    if sys.platform == "win32":  # Windows cannot remove an open file
        mark.release()
    (folder / MARK).unlink()


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        (folder / MARK).touch()  # a command that was slow to end wrote more files
        raise


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == MARK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _free_bytes(folder: Path) -> int:
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder.anchor)
    return shutil.disk_usage(there).free


def _version(recipe: Recipe, limit_s: float) -> str:
    """``""`` where it does not start."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [str(recipe.tandem), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=_environment(),
            cwd=recipe.folder,
            timeout=limit_s,
            check=False,
        )
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        return lines[-1] if lines else ""
    return ""


def _environment() -> dict[str, str]:
    return {**variables(), **_TALK, **_PIP}


def _start(command: tuple[str, ...], folder: Path, held: tuple[int, ...]) -> subprocess.Popen[str]:
    """``held``: descriptors that it keeps open as long as it lives."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=_environment(),
        # `-m` searches this folder first for modules, and uv for settings: it must never be a project where
        # Tandem was started.
        cwd=folder,
        pass_fds=held,
        start_new_session=True,  # Ctrl-C in a terminal goes to Tandem, which then ends it
    )


def _end(pid: int) -> None:
    """End a process and what it started. Where process groups exist, it leads one."""
    with suppress(psutil.NoSuchProcess):
        child = psutil.Process(pid)
        for each in (*child.children(recursive=True), child):
            with suppress(psutil.NoSuchProcess):
                each.kill()
    if sys.platform != "win32":  # including what was started meanwhile
        # macOS refuses to signal dead processes.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, KILL)
