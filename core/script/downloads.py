"""Paths where Keras stores files that a script downloads with it, from the script's text alone. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from core.script.imports import Module
from core.script.syntax import SourceTree

DATASETS = "datasets"
_LOADS = re.compile(r"(?:.+\.)?datasets\.(\w+)\.(load_data|get_word_index)")
_OWN = {
    "cifar10": "cifar-10-batches-py-target_archive",
    "cifar100": "cifar-100-python-target_archive",
    "fashion_mnist": "fashion-mnist",
}
"""Keras extracts an archive anew each time."""
_FILES = ("mnist", "boston_housing", "california_housing", "imdb", "reuters")
_NAME = re.compile(r"[\w-][\w.-]*")
"""Security invariant: the name cannot lead out of the folder. The script may come from another laptop, and
members receive the file."""


def kept_downloads(modules: Iterable[Module]) -> tuple[str, ...]:
    """Paths of files and folders below Keras' folder, in the order of the downloading calls."""
    found = [
        f"{DATASETS}/{name}"
        for module in modules
        for source in (SourceTree(module),)
        for call in source.calls
        if (name := _kept(source, call))
    ]
    return tuple(dict.fromkeys(found))


def _kept(source: SourceTree, call: ast.Call) -> str:
    """``""`` if it downloads nothing, or under an unknown name."""
    name = source.dotted(call.func)
    if loads := _LOADS.fullmatch(name):
        if loads[1] in _OWN:
            return _OWN[loads[1]]
        ending = ".npz" if loads[2] == "load_data" else "_word_index.json"
        named = _text(source, call, "path", 0) or (loads[1] + ending if loads[1] in _FILES else "")
        return named if _NAME.fullmatch(named) else ""
    if not name.endswith(("utils.get_file", "file_utils.get_file")):
        return ""
    subdir = _given(call, "cache_subdir", 5)
    if _given(call, "cache_dir", 9) or (subdir and _text(source, call, "cache_subdir", 5) != DATASETS):
        return ""
    file = _text(source, call, "fname", 0)
    kept = file or _text(source, call, "origin", 1).rpartition("/")[2]
    if not _NAME.fullmatch(kept):
        return ""
    given = (_given(call, "untar", 2), _given(call, "extract", 7))
    extracts = any(each and not (isinstance(each, ast.Constant) and not each.value) for each in given)
    return f"{kept}_archive" if extracts and (not file or "." not in file) else kept


def _given(call: ast.Call, name: str, position: int) -> ast.expr | None:
    positional = call.args[position] if len(call.args) > position else None
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), positional)


def _text(source: SourceTree, call: ast.Call, name: str, position: int) -> str:
    given = _given(call, name, position)
    for value in source.values(given) if given is not None else ():
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return ""
