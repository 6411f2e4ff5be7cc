"""What a script does with the files that it names: reads them, or only writes them. By its text alone.

Blocks: use a thread. Wherever the text leaves a doubt, a file counts as read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from core.project.imports import read_sources
from core.project.syntax import Source, called
from core.vocabulary.errors import TandemError

_MAKES_PATHS = frozenset(["Path", "PurePath", "join", "abspath", "str", "expanduser", "format", "resolve"])
_WRITES = re.compile(
    r"ModelCheckpoint|CSVLogger|save(_weights|_model|_img|z|z_compressed|txt|fig)?|plot_model|mkdir|makedirs"
    r"|TensorBoard|create_file_writer"
    r"|to_(csv|json|pickle)|write_\w+"
)
_SHOWS = "print"
_OPENS_TO_WRITE = re.compile(r"w[bt]?")
_LISTS = re.compile(r"i?glob|rglob|listdir|scandir|iterdir|f?walk|latest_checkpoint|system|exec|eval|popen")
"""Calls by which a script reads, or runs, what it does not name."""
_OF_A_FOLDER = re.compile(r"\w+_from_directory")
_UNSEEN = frozenset(["subprocess", "importlib", "runpy"])
_CODE = (".py", ".pyw", ".ipynb")
_FILLED_IN = re.compile(r"%[-+ #0-9.]*[a-z]|\{[^{}]*\}")
_LEAST = 2
"""Characters of a part of a name, below which it says nothing."""


class _Mention(NamedTuple):
    """A text in the source, as far as it may be a name: what follows its last ``/``."""

    name: str
    is_part: bool
    """It is put together with others."""
    written: bool

    def may_mean(self, name: str) -> bool:
        if self.name == name or fnmatchcase(name, _FILLED_IN.sub("*", self.name)):
            return True
        if len(self.name) < _LEAST:
            return False
        is_end = self.is_part or self.name.startswith(".")
        return (self.is_part and name.startswith(self.name)) or (is_end and name.endswith(self.name))


def only_written(script: Path, paths: Collection[str], arguments: Collection[str] = ()) -> frozenset[str]:
    """Those of ``paths`` that the script and what it imports write and never read: what an earlier run left.

    Plots that Tandem saved for it and TensorBoard's files, whose names stand nowhere, are among them. Code
    never is, nor what stands in the ``arguments``.
    """
    try:
        sources = read_sources(script)
    except TandemError:
        return frozenset()
    modules = [Source(module) for module in sources.modules]
    if sources.broken or any(_reads_unseen(source) for source in modules):
        return frozenset()
    mentions = [
        mention for source in modules for mention in _mentions(source, follows_names=len(modules) == 1)
    ]
    unnamed = re.compile(rf"{re.escape(script.stem)}-plot-\d+\.png|(.*/)?events\.out\.tfevents\.[^/]+")
    written = {mention.name for mention in mentions if mention.written}
    return frozenset(
        path
        for path in paths
        if not path.endswith(_CODE)
        and (path.rpartition("/")[2] in written or unnamed.fullmatch(path))
        and not any(part in argument for part in path.split("/") for argument in arguments)
        and all(mention.written for part in path.split("/") for mention in mentions if mention.may_mean(part))
    )


def _mentions(source: Source, *, follows_names: bool) -> Iterator[_Mention]:
    """``follows_names``: no other module may do something else with what a name stands for."""
    for node in source.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        parent = next((parent for parent, _ in source.around(node)), None)
        found = list(uses(source, node, followed=not follows_names))
        name = node.value.replace("\\", "/").rstrip("/").rpartition("/")[2]
        if not name or isinstance(parent, ast.Expr) or set(found) == {_SHOWS}:
            continue
        is_part = isinstance(parent, ast.JoinedStr) or (
            isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Div)
        )
        yield _Mention(name, is_part, bool(found) and not is_read(found))


def is_read(found: Iterable[str]) -> bool:
    """Whether one of these ``uses`` does more than to write what it gets the name of, or to show the name."""
    return any(use != _SHOWS and _WRITES.fullmatch(use) is None for use in found)


def uses(source: Source, node: ast.AST, followed: bool = False) -> Iterator[str]:
    """Names of the functions that get a value, or what it was assigned to; "" where it goes elsewhere, or
    where what is there already counts."""
    for parent, _ in source.around(node):
        match parent:
            case ast.Call() if called(parent) in _MAKES_PATHS:
                continue
            case ast.Call():
                yield _use(parent)
                return
            case ast.keyword() | ast.BinOp() | ast.Attribute() | ast.JoinedStr() | ast.FormattedValue():
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if not followed:
                for other in source.loads.get(name, ()):
                    yield from uses(source, other, followed=True)
                return
            case _:
                break
    yield ""


def _use(call: ast.Call) -> str:
    name = called(call)
    said = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "open":
        modes = [*call.args[isinstance(call.func, ast.Name) :], *filter(None, [said.get("mode")])]
        return "write_file" if any(_is_to_write(mode) for mode in modes) else name
    what_is_there_counts = {"append", "overwrite"} & said.keys() or (
        "mode" in said and not _is_to_write(said["mode"])
    )
    return "" if what_is_there_counts or (name == "CSVLogger" and len(call.args) > 2) else name


def _is_to_write(mode: ast.expr) -> bool:
    value = mode.value if isinstance(mode, ast.Constant) else None
    return isinstance(value, str) and _OPENS_TO_WRITE.fullmatch(value) is not None


def _reads_unseen(source: Source) -> bool:
    """Whether it reads files that it does not name: all of a folder, or what another program reads."""
    if source.imports & _UNSEEN:
        return True
    for call in source.calls:
        name = called(call)
        if _LISTS.fullmatch(name):
            return True
        if _OF_A_FOLDER.fullmatch(name):
            folder = next(iter(call.args), None) or next((k.value for k in call.keywords), None)
            named = [n.value for n in ast.walk(folder) if isinstance(n, ast.Constant)] if folder else []
            if not any(isinstance(text, str) and text.strip("./") for text in named):
                return True
    return False
