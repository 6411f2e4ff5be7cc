"""Makes an environment by its recipe. What is half made carries a mark, and nobody takes it for a whole one.

Blocks for minutes: use a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from core.environment import problems
from core.environment.recipe import CONSTRAINTS, Recipe, WantedVersions
from core.home.lock import HomeLock
from core.vocabulary.errors import TandemError

MARK = "making.lock"
"""In the folder as long as it is half made. Who makes it holds it; one that nobody holds was left behind."""
LIMIT_S = 3 * 3600.0
"""For each step: a slow network may take an hour for TensorFlow."""
TRY_LIMIT_S = 120.0
_KEPT_LINES = 200
_TALK = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8:replace",
    "NO_COLOR": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off"}
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PIP_TARGET")
"""Environment variables that are for this Python, and would mislead the other."""


def said_by(recipe: Recipe, limit_s: float = TRY_LIMIT_S) -> str:
    """What the finished environment's Tandem says of itself; ``""``: there is nothing at all yet.

    Raises ``TandemError`` where something else lies there, or another Tandem is at work.
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
    """Whether ``tandem --version`` names what is wanted."""
    named = set(re.split(r"[(),\s]*[(),][(),\s]*", said.strip()))
    packages = (("TensorFlow", wanted.tensorflow), ("Keras", wanted.keras))
    needed = {f"Python {wanted.python}", *(f"{label} {version}" for label, version in packages if version)}
    return needed <= named


class Making:
    """``told`` hears each line that the commands say, on the thread that runs. ``stop`` from any thread."""

    def __init__(self, recipe: Recipe, told: Callable[[str], object], limit_s: float = LIMIT_S) -> None:
        self._recipe = recipe
        self._told = told
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> str:
        """What the new Tandem says of itself (``--version``); ``""`` if it was stopped.

        What was left half made is made anew. Raises ``TandemError``; then, and where it was stopped, the
        folder is gone again.
        """
        recipe = self._recipe
        if said := said_by(recipe):
            return said
        free = _free_bytes(recipe.folder)
        if free < recipe.disk_bytes:
            raise TandemError.of(problems.no_space(recipe.folder, recipe.disk_bytes))
        try:
            with _claimed(recipe.folder):
                (recipe.folder / CONSTRAINTS).write_text(recipe.constraints, encoding="utf-8")
                for step in recipe.steps:
                    self._told(f"{step.words}: {step}")
                    self._do(step.words, step.command)
                said = _version(recipe, TRY_LIMIT_S)
                if not self._stopped and not has(said, recipe.wanted):
                    raise TandemError.of(problems.not_as_wanted(str(recipe.wanted), said))
                if self._stopped:
                    raise _Stopped
        except _Stopped:
            return ""
        except OSError as error:
            raise TandemError.of(problems.unwritable(recipe.folder, error)) from error
        return said

    def stop(self) -> None:
        """``run`` ends within moments, and removes what it made."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                _end(self._child.pid)

    def _do(self, words: str, command: tuple[str, ...]) -> None:
        with self._lock:
            if self._stopped:
                raise _Stopped
            self._child = child = _start(command)
        late = threading.Event()

        def end_late() -> None:
            late.set()
            _end(child.pid)

        limit = threading.Timer(self._limit_s, end_late)
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
            raise TandemError.of(problems.too_long(words, self._limit_s))
        if status != 0:
            python = self._recipe.wanted.python
            raise TandemError.of(problems.failed(words, tuple(lines), python, self._recipe.folder))


class _Stopped(Exception):
    pass


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """The folder with nothing but the mark in it, which goes when all went well; else the folder goes."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = _hold(folder)
    try:
        for entry in folder.iterdir():
            if entry.name != MARK:
                _remove(entry)
        yield
    except BaseException:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    lock.release()
    (folder / MARK).unlink()


def _hold(folder: Path) -> HomeLock:
    try:
        return HomeLock.acquire(folder / MARK)
    except TandemError as error:
        if error.code == "home-held":
            raise TandemError.of(problems.under_way(folder)) from error
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


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
            timeout=limit_s,
            check=False,
        )
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        return lines[-1] if lines else ""
    return ""


def _start(command: tuple[str, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=_environment(),
        start_new_session=True,  # Ctrl-C in a terminal is for Tandem, which ends it then
    )


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    return {**kept, **_TALK, **_PIP}


def _end(pid: int) -> None:
    """The process and what it started."""
    with suppress(psutil.NoSuchProcess):
        child = psutil.Process(pid)
        for each in (*child.children(recursive=True), child):
            with suppress(psutil.NoSuchProcess):
                each.kill()
