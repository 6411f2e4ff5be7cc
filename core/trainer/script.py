"""Runs a user's script as ``python script.py`` would: its ``__main__``, arguments, folder and modules."""

from __future__ import annotations
import __future__

import atexit
import importlib
import io
import linecache
import os
import sys
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from operator import or_
from pathlib import Path
from typing import Any

from core.script.notebook import SUFFIX, named, read_notebook
from core.trainer.data_places import Places
from core.vocabulary.versions import ROOT, is_frozen

OURS = ("app", "core", "resources")
"""Tandem's package names. A script may have packages of the same names: its own imports find those."""

_FUTURES = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))

_kept: list[types.ModuleType] = []


class _NotOurs(MetaPathFinder):
    """Finds packages with Tandem's names outside Tandem; hides Tandem's however they are installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in OURS:
            return None
        elsewhere = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
        spec = PathFinder.find_spec(name, elsewhere, target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec


def hide_tandem() -> None:
    """Makes ``import core`` mean the script's own package. Tandem's loaded modules keep working by reference.

    No further module of Tandem can be imported after this, and message decoders must exist before.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        _kept.append(sys.modules.pop(name))
    if not is_frozen():  # a frozen Tandem contains every package
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
    sys.meta_path.insert(0, _NotOurs())
    importlib.invalidate_caches()


def run(
    path: Path,
    arguments: Sequence[str],
    *,
    after_cell: Callable[[], None] = lambda: None,
    data: Mapping[str, str] = types.MappingProxyType({}),
) -> None:
    """Raises whatever the script raises. ``path`` is absolute; its folder becomes the working directory.

    ``after_cell`` is called after each cell of a notebook. ``data``: see ``Train``.
    """
    places = Places(data, path.parent)
    places.install()
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __spec__=None)
    os.chdir(path.parent)
    sys.argv[:] = [str(path), *map(places.argument, arguments)]
    sys.path.insert(0, str(path.parent))
    _kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    if path.suffix == SUFFIX:
        _run_cells(path, main.__dict__, after_cell, places)
    else:
        main.__dict__.update(__file__=str(path), __cached__=None)
        with io.open_code(str(path)) as file:
            source = file.read()
        exec(compile(places.source(source, str(path)), str(path), "exec", dont_inherit=True), main.__dict__)
    _wait_threads()


def _run_cells(path: Path, names: dict[str, Any], after_cell: Callable[[], None], places: Places) -> None:
    """Like Jupyter: no ``__file__``, and ``from __future__`` applies from then on. ``display`` prints."""
    names["display"] = print
    flags = 0
    for cell in read_notebook(path).cells:
        filename = named(str(path), cell.number)
        # For tracebacks, and for AutoGraph, which reads the source of a function that it traces.
        text = places.text(cell.text)
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        code = compile(text, filename, "exec", flags, dont_inherit=True)
        flags |= code.co_flags & _FUTURES
        exec(code, names)
        after_cell()


def _wait_threads() -> None:
    """Like Python at exit: lets the script's own threads finish first."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def run_exit_functions() -> None:
    """Runs the script's ``atexit`` functions; the process then leaves without TensorFlow's shutdown."""
    atexit._run_exitfuncs()
