"""Turns a trainer that was kept ready into a run's, as if it had been started for it. On its only thread.

Until then it runs only Tandem's code and libraries. TensorFlow is loaded but starts threads only with its
first tensor, so walls and seals, which bind one thread, can still be raised.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from core.supervisor import spawn
from core.vocabulary.trainer_messages import Become
from core.walls import enclosure, levels

_SETTERS = (
    *("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads"),
    *("openblas_set_num_threads64_", "openblas_set_num_threads"),
)
"""In the wheels of NumPy 2, in older ones, and in other distributions."""
_COUNTS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""In the order in which OpenBLAS reads them."""


def become(
    begin: Become, given: dict[str, str], channels: Sequence[int], beside: Sequence[int] = ()
) -> Callable[[], None]:
    """Adopts the run's environment. Returns a function that starts NumPy's threads: call it within the walls.

    ``given``: the environment with which this process was started. ``beside``: Tandem's own descriptors other
    than the channels'.

    Security invariant: a process to be walled or sealed that has more threads or open files than a new one
    restarts itself, and raises walls or seal before TensorFlow is loaded.
    """
    variables = spawn.unpacked(begin.environment)
    confined = begin.sealed or (begin.walls is not None and levels.found().walls != "none")
    start_threads = _numpy_thread_starter()
    if confined and not (is_like_new((*channels, *beside)) and start_threads):
        _restart(begin, variables, channels)
    for name in given.keys() - variables.keys():
        os.environ.pop(name, None)
    os.environ.update(variables)
    # Cached from the old environment while TensorFlow was loaded.
    tempfile.tempdir = None
    importlib.reload(sys.modules["keras.src.backend.config"])
    return start_threads or (lambda: None)


def is_like_new(descriptors: Sequence[int]) -> bool:
    """Whether this process has one thread and nothing open but ``descriptors`` and its standard streams.

    Linux only.
    """
    return enclosure.threads() == 1 and _open_descriptors() <= {0, 1, 2, *descriptors}


def _open_descriptors() -> set[int]:
    listed = [int(each.name) for each in Path("/proc/self/fd").iterdir()]
    return {fd for fd in listed if Path(f"/proc/self/fd/{fd}").is_symlink()}


def _restart(begin: Become, variables: dict[str, str], channels: Sequence[int]) -> None:
    for fd in channels:
        os.set_inheritable(fd, True)
    options = spawn.options(sealed=begin.sealed, walls=begin.walls)
    words = [*spawn.command(), *spawn.channels(channels), *options]
    os.execve(words[0], words, variables)


def _numpy_thread_starter() -> Callable[[], None] | None:
    """A function that starts as many threads as OpenBLAS does when it is loaded; None if OpenBLAS cannot."""
    if spawn.ONE_THREAD not in os.environ:
        return lambda: None
    setters = [found for path in _libraries() if (found := _setter(path)) is not None]
    if not setters:
        return None

    def start() -> None:
        count = next(filter(None, (_number(os.environ.get(name, "")) for name in _COUNTS)), None)
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        for setter in setters:
            setter(min(count or processors, processors))

    return start


def _libraries() -> list[str]:
    """The loaded builds of OpenBLAS, by path."""
    lines = Path("/proc/self/maps").read_text("utf-8", errors="surrogateescape").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if "openblas" in Path(path).name)


def _setter(path: str) -> Callable[[int], object] | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    return next((getattr(library, name) for name in _SETTERS if hasattr(library, name)), None)


def _number(text: str) -> int:
    found = re.match(r"\s*(\d+)", text)
    return int(found[1]) if found else 0
