"""Finds files that a script names and that the other laptops lack, from its text and this laptop's disk.

Blocks: use a thread.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from core.project.ignore import TANDEM_RULES
from core.project.scan import is_broad
from core.script.imports import read_sources
from core.script.syntax import Mistake, SourceTree
from core.script.writes import is_read, uses
from core.vocabulary.access import is_within
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.text import spelled

CODE = "file-only-here"
_WHOLE = re.compile(r"(~|[A-Za-z]:[/\\]|/)[^\n\0]{1,1000}")
_RELATIVE = re.compile(r"[\w .+=@-][\w /.+=@-]{0,1000}\.\w+")
_NO_NAME = re.compile(r"[^\w.-]+")
_OF_THE_SYSTEM = re.compile(r"/(dev|proc|sys|bin|sbin|lib|usr|etc)(/|$)")


def find_only_here(script: Path, manifest: Manifest, data: Sequence[str] = ()) -> tuple[Mistake, ...]:
    """At the first line that names each. ``data``: paths of data folders, which travel. Raises
    ``TandemError`` where the script itself is not valid Python."""
    folder, travels = script.parent, {file.path for file in manifest.files}
    found: dict[str, Mistake] = {}
    for module in read_sources(script).modules:
        source = SourceTree(module)
        texts = [
            node for node in source.nodes if isinstance(node, ast.Constant) and _may_be_path(source, node)
        ]
        for node in sorted(texts, key=lambda node: node.lineno):
            text = str(node.value)
            if text in found or is_within(text, data):
                continue
            if _WHOLE.fullmatch(text) and _is_elsewhere(text):
                found[text] = _outside(*module.place(node.lineno), text)
            elif _RELATIVE.fullmatch(text) and text not in travels and _is_read(source, node, folder / text):
                found[text] = _left_out(*module.place(node.lineno), text, broad=is_broad(folder))
    return tuple(found.values())


def _may_be_path(source: SourceTree, node: ast.Constant) -> bool:
    """Whether a text begins where a path would: no docstring, and no later part of an expression."""
    if not isinstance(node.value, str):
        return False
    parent = next((parent for parent, _ in source.around(node)), None)
    match parent:
        case ast.Expr():
            return False
        case ast.JoinedStr():
            return parent.values[0] is node
        case ast.BinOp():
            return parent.left is node
    return True


def _is_elsewhere(text: str) -> bool:
    """Whether it is a file or folder here outside the project, or one that could be created here."""
    try:
        path = Path(text).expanduser()
        if _OF_THE_SYSTEM.match(path.as_posix()) or path == path.parent:
            return False
        return path.exists() or (path.parent != Path(path.anchor) and path.parent.is_dir())
    except (OSError, RuntimeError, ValueError):
        return False


def _is_read(source: SourceTree, node: ast.Constant, path: Path) -> bool:
    """Whether it is a file here that the script does more with than write it."""
    try:
        there = path.is_file()
    except (OSError, ValueError):
        return False
    return there and is_read(uses(source, node))


def _outside(path: str, line: int, text: str) -> Mistake:
    """``detail``: the data folder that it would be, as NAME=PATH, if there is something."""
    fix = "Keep it beside the script, under a relative name; or see that all laptops have the same there."
    data = ""
    if (found := Path(text).expanduser()).exists():
        name = _NO_NAME.sub("-", found.stem)[:40] or "data"
        data = f"{name}={text}"
        fix = (
            f"Let it travel: --data {spelled(shlex.quote(data))} (in the window, Data folders in Options). "
            "Laptops with the same data use theirs. Or keep it beside the script, by a relative name."
        )
    return Mistake(
        code=CODE,
        path=path,
        line=line,
        what=f"{shown(text)} lies outside the project: each laptop has its own, or none. What Keras saves "
        "there is written by the chief alone, and what Keras loads from there is the chief's.",
        fix=fix,
        detail=data,
    )


def _left_out(path: str, line: int, text: str, *, broad: bool) -> Mistake:
    own_folder = "Put the script into a folder of its own, together with the file."
    by_rule = f"Write the line !{shown(text)} into {TANDEM_RULES} beside the script, and it travels, too."
    return Mistake(
        code=CODE,
        path=path,
        line=line,
        what=f"{shown(text)} does not travel with the script: the other laptops do not have it.",
        fix=own_folder if broad else by_rule,
    )
