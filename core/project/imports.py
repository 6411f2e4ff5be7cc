"""Reads a script and the modules beside it that it imports, as syntax trees. Nothing is ever executed."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec

from core.project.files import NotRegular, open_regular
from core.vocabulary.errors import TandemError
from core.vocabulary.paths import shown, why_unsafe

SOURCE_BYTES = 2_000_000
MODULES_FOLLOWED = 500
_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 mixes up how deep threads are that parse at once, and warnings' filters are shared."""


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One file of source. ``path`` is relative to the script's folder."""

    path: str
    tree: ast.Module


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The script first, then what it imports from its folder; ``broken``: those that Python cannot read."""

    modules: tuple[Module, ...]
    broken: tuple[tuple[str, TandemError], ...] = ()


def read_sources(script: Path, *, most_modules: int = MODULES_FOLLOWED) -> Sources:
    """Follow imports inside the folder. Raises ``TandemError`` where the script itself is no Python."""
    folder = script.parent
    modules = {script.name: Module(path=script.name, tree=read_source(script))}
    broken: list[tuple[str, TandemError]] = []
    waiting, met = [script.name], {script.name}
    while waiting:
        path = waiting.pop(0)
        for other in _imported_files(folder, path, modules[path].tree):
            if other in met or len(met) >= most_modules:
                continue
            met.add(other)
            try:
                modules[other] = Module(path=other, tree=read_source(folder / other))
                waiting.append(other)
            except TandemError as error:
                broken.append((other, error))
    return Sources(modules=tuple(modules.values()), broken=tuple(broken))


def resolved(script: Path) -> Path:
    """Where a script really lies: Python, too, looks for modules there. Raises ``TandemError``."""
    try:
        return script.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle
        raise _unreadable(shown(script.name), error) from error


def read_source(path: Path) -> ast.Module:
    """The syntax tree. Raises ``TandemError`` with the line where this is no Python."""
    name = shown(path.name)
    try:
        with open_regular(path) as file:
            source = file.read(SOURCE_BYTES + 1)
    except FileNotFoundError as error:
        raise TandemError(
            code="script-missing",
            what=f"There is no script at {shown(str(path))}.",
            fix="Check the path, or choose the script again.",
        ) from error
    except (OSError, NotRegular) as error:
        raise _unreadable(name, error) from error
    if len(source) > SOURCE_BYTES:
        raise _not_python(name, f"it is larger than {SOURCE_BYTES / 1e6:.0f} MB")
    if b"\0" in source:
        raise _not_python(name, "it holds bytes that no text holds")
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, filename=name)
    except SyntaxError as error:
        if error.lineno is None:
            raise _not_python(name, error.msg) from error
        text = f"    {error.text.strip()}" if error.text else ""
        raise TandemError(
            code="script-syntax",
            what=f"{name} has a syntax error in line {error.lineno}: {error.msg}.",
            fix=f"Mend line {error.lineno} and try again.",
            detail=f"{name}:{error.lineno}\n{text}",
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _not_python(name, "Python cannot take it apart") from error


def _unreadable(name: str, error: Exception) -> TandemError:
    return TandemError(
        code="script-unreadable",
        what=f"{name} cannot be read.",
        fix="Choose an ordinary file that you may open.",
        detail=repr(error),
    )


def _not_python(name: str, reason: str) -> TandemError:
    return TandemError(
        code="script-not-python",
        what=f"{name} is not a Python script: {reason}.",
        fix="Choose a .py file that trains with Keras.",
    )


def _imported_files(folder: Path, path: str, tree: ast.Module) -> Iterator[str]:
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
    """The file of each step of a dotted name, as Python finds them: a package before a module."""
    for depth in range(1, len(names) + 1):
        stem = "/".join(names[:depth])
        for candidate in (f"{stem}/__init__.py", f"{stem}.py"):
            if _is_inside(folder, candidate):
                yield candidate
                break


def _is_inside(folder: Path, path: str) -> bool:
    """A regular file below the folder, with no link on the way."""
    if why_unsafe(path):
        return False
    names = path.split("/")
    steps = [folder.joinpath(*names[:depth]) for depth in range(1, len(names) + 1)]
    try:
        return steps[-1].is_file() and not any(step.is_symlink() for step in steps)
    except OSError:  # a folder that may not be entered
        return False
