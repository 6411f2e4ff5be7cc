"""Reads a script and the modules beside it that it imports, as syntax trees. Nothing is ever executed."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from core.runtime.regular_file import NotRegular, open_regular
from core.script.notebook import SUFFIX, Notebook, named, read_notebook
from core.script.parse import SOURCE_BYTES, not_python, parse
from core.vocabulary import units
from core.vocabulary.errors import TandemError
from core.vocabulary.paths import shown, why_unsafe

MODULES_FOLLOWED = 500


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One source file. ``path`` is relative to the script's folder. ``notebook``: the source of ``tree``, if
    it is a notebook."""

    path: str
    tree: ast.Module
    notebook: Notebook | None = None

    def place(self, line: int) -> tuple[str, int]:
        """The displayed file and line for a line of the tree; in a notebook, the cell and its line."""
        if self.notebook is None or not line:
            return self.path, line
        cell, line = self.notebook.place(line)
        return named(self.path, cell), line


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The script first, then its imports from its folder; ``broken``: modules that Python cannot parse."""

    modules: tuple[Module, ...]
    broken: tuple[tuple[str, TandemError], ...] = ()


def read_sources(script: Path, *, most_modules: int = MODULES_FOLLOWED) -> Sources:
    """Follow imports inside the folder. Raises ``TandemError`` where the script itself is not valid
    Python."""
    folder = script.parent
    modules = {script.name: read_module(folder, script.name)}
    broken: list[tuple[str, TandemError]] = []
    waiting, met = [script.name], {script.name}
    while waiting:
        path = waiting.pop(0)
        for other in imported_files(folder, path, modules[path].tree):
            if other in met or len(met) >= most_modules:
                continue
            met.add(other)
            try:
                modules[other] = read_module(folder, other)
                waiting.append(other)
            except TandemError as error:
                broken.append((other, error))
    return Sources(modules=tuple(modules.values()), broken=tuple(broken))


def resolved(script: Path) -> Path:
    """A script's real path, beside which Python also searches for modules. Raises ``TandemError``."""
    try:
        return script.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle
        raise _unreadable(shown(script.name), error) from error


def read_source(path: Path) -> ast.Module:
    """The syntax tree. Raises ``TandemError`` with the line where this is not valid Python."""
    return read_module(path.parent, path.name).tree


def read_module(folder: Path, path: str) -> Module:
    """A script, a notebook or a module in ``folder``. Raises ``TandemError``."""
    file, name = folder / path, shown(path.rpartition("/")[2])
    try:
        if file.suffix == SUFFIX:
            notebook = read_notebook(file)
            return Module(path=path, tree=notebook.tree(name), notebook=notebook)
        with open_regular(file) as opened:
            source = opened.read(SOURCE_BYTES + 1)
    except FileNotFoundError as error:
        raise missing(file) from error
    except (OSError, NotRegular) as error:
        raise _unreadable(name, error) from error
    if len(source) > SOURCE_BYTES:
        raise not_python(name, f"it is larger than {units.size(SOURCE_BYTES)}")
    return Module(path=path, tree=parse(source, name))


def missing(path: Path) -> TandemError:
    """The error that there is no script at ``path``; suggests a file of a similar name beside it."""
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except (OSError, ValueError):
        beside = []
    near = difflib.get_close_matches(path.name, beside, n=1)
    hint = f"Did you mean {shown(near[0])}?" if near else "Check the path. The script may have been moved."
    return TandemError(code="script-missing", what=f"There is no script at {shown(str(path))}.", fix=hint)


def _unreadable(name: str, error: Exception) -> TandemError:
    return TandemError(
        code="script-unreadable",
        what=f"{name} cannot be read.",
        fix="Choose an ordinary file that you can open.",
        detail=repr(error),
    )


def imported_files(folder: Path, path: str, tree: ast.AST) -> Iterator[str]:
    """The files of ``folder`` that are imported in ``tree``, a part of its file ``path``."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(folder, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            if node.level > len(package) + 1:
                continue
            target = start + (node.module.split(".") if node.module else [])
            yield from _files_of(folder, target)
            for alias in node.names:
                if alias.name != "*":
                    yield from _files_of(folder, [*target, alias.name])
        elif isinstance(node, ast.Call) and (name := _literal_import(node)):
            yield from _files_of(folder, name.split("."))


def _literal_import(node: ast.Call) -> str | None:
    """``importlib.import_module("helper")`` and ``__import__("helper")``."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called not in ("import_module", "__import__") or not node.args:
        return None
    name = getattr(node.args[0], "value", None)
    return name.strip(".") or None if isinstance(name, str) else None


def _files_of(folder: Path, names: list[str]) -> Iterator[str]:
    """The file of each prefix of a dotted name, as Python finds it: a package before a module."""
    for depth in range(1, len(names) + 1):
        stem = "/".join(names[:depth])
        for candidate in (f"{stem}/__init__.py", f"{stem}.py"):
            if _is_inside(folder, candidate):
                yield candidate
                break


def _is_inside(folder: Path, path: str) -> bool:
    """Whether ``path`` is a regular file below the folder, reached through no link."""
    if why_unsafe(path):
        return False
    names = path.split("/")
    steps = [folder.joinpath(*names[:depth]) for depth in range(1, len(names) + 1)]
    try:
        return steps[-1].is_file() and not any(step.is_symlink() for step in steps)
    except OSError:  # a folder that may not be entered
        return False
