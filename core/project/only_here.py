"""Finds files that a script names and that the other laptops lack, from its text and this laptop's disk.

Blocks: use a thread.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.project.ignore import TANDEM_RULES
from core.project.scan import is_broad
from core.script.imports import read_sources
from core.script.path_texts import PathText, PathTexts
from core.script.syntax import Mistake, SourceTree
from core.script.writes import is_read, uses
from core.vocabulary.access import is_within
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.text import spelled

CODE = "file-only-here"
_WHOLE = re.compile(r"(~|[A-Za-z]:[/\\]|/)[^\n\0]{1,1000}")
_RELATIVE = re.compile(r"[\w .+=@-][\w /.+=@-]{0,1000}\.\w+")
_PATTERN = re.compile(r"[*?\[{%]")
_NO_NAME = re.compile(r"[^\w.-]+")
_OF_THE_SYSTEM = re.compile(r"/(dev|proc|sys|bin|sbin|lib|usr|etc)(/|$)")


def find_only_here(script: Path, manifest: Manifest, data: Sequence[str] = ()) -> tuple[Mistake, ...]:
    """A mistake for each such file, at the first line that names it. ``data``: data folders to be sent.
    Raises ``TandemError`` where the script itself is not valid Python."""
    folder, travels = script.parent, {file.path for file in manifest.files}
    found: dict[str, Mistake] = {}
    for module in read_sources(script).modules:
        source = SourceTree(module)
        for node, path in _paths(source):
            text = path.text if path.is_absolute else posixpath.normpath(path.text)
            place = module.place(node.lineno)
            if text in found or is_within(text, data):
                continue
            if _WHOLE.fullmatch(text):
                known = _known(path)
                if _is_elsewhere(known, may_be_new=known == text):
                    has_data = known == text or is_read(uses(source, node))
                    found[text] = _outside(*place, text, known if has_data and _may_travel(known) else "")
            elif text.startswith("../") and (above := Path(os.path.normpath(folder / text))).exists():
                found[text] = _above(*place, text, above)
            elif _RELATIVE.fullmatch(text) and text not in travels and _is_read(source, node, folder / text):
                found[text] = _left_out(*place, text, broad=is_broad(folder))
    return tuple(_without_parts(found))


def _paths(source: SourceTree) -> Iterator[tuple[ast.expr, PathText]]:
    """The largest expressions that evaluate to a path, with that path, in the order of lines."""
    texts, parts, found = PathTexts(source), set[ast.AST](), list[tuple[ast.expr, PathText]]()
    for node in source.nodes:
        if node in parts or not isinstance(node, ast.expr) or not _may_be_path(source, node):
            continue
        if (path := texts.of(node)) is not None:
            parts |= set(path.parts)
            found.append((node, path))
    longer: dict[str, set[str]] = defaultdict(set)
    for _, path in found:
        for name in (part.id for part in path.parts if isinstance(part, ast.Name)):
            longer[name].add(path.text)
    for node, path in sorted(found, key=lambda each: each[0].lineno):
        # A name that only begins other paths is not reported: BASE in join(BASE, "photos").
        match next((parent for parent, _ in source.around(node)), None):
            case ast.Assign(targets=[ast.Name(id=name)]) if longer[name] and all(
                load in parts for load in source.loads.get(name, ())
            ):
                if len(longer[name]) == 1 or not _may_travel(path.text):
                    continue
        yield node, path


def _may_be_path(source: SourceTree, node: ast.expr) -> bool:
    """Whether an expression can be the beginning of a path: not a docstring, a bare name, or a later part of
    another expression."""
    if isinstance(node, ast.Name | ast.FormattedValue):
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


def _known(path: PathText) -> str:
    """The part of a path that is certain: all of it, or the folder before a pattern or a placeholder."""
    text = path.text
    if path.is_whole and (_PATTERN.search(text) is None or _is_elsewhere(text)):
        return text
    known = text if path.is_whole else text[: text.rfind("/") + 1]
    if (pattern := _PATTERN.search(known)) is not None:
        known = known[: known.rfind("/", 0, pattern.start()) + 1]
    return known.rstrip("/") or "/"


def _is_elsewhere(text: str, *, may_be_new: bool = False) -> bool:
    """Whether this is an existing file or folder outside the project, or (``may_be_new``) one that could be
    created."""
    try:
        path = Path(text).expanduser()
        if _OF_THE_SYSTEM.match(path.as_posix()) or path == path.parent:
            return False
        is_new = may_be_new and path.parent != Path(path.anchor) and path.parent.is_dir()
        return is_new or path.exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _may_travel(text: str) -> bool:
    """Whether this is an existing file or folder that a person may want to send as a whole."""
    try:
        path = Path(text).expanduser().resolve()
        return path.exists() and not is_broad(path)
    except (OSError, RuntimeError, ValueError):
        return False


def _without_parts(found: Mapping[str, Mistake]) -> Iterator[Mistake]:
    """The mistakes, without those whose file would be sent with another one's folder."""
    offered = {text: mistake.detail.partition("=")[2] for text, mistake in found.items()}
    named = set[str]()
    for text, mistake in found.items():
        others = {path for path in offered.values() if path} - {offered[text]}
        if not is_within(offered[text] or text, others) and offered[text] not in named:
            yield mistake
        named |= {offered[text]} - {""}


def _is_read(source: SourceTree, node: ast.AST, path: Path) -> bool:
    """Whether this is an existing file that the script does not only write."""
    try:
        there = path.is_file()
    except (OSError, ValueError):
        return False
    return there and is_read(uses(source, node))


def _outside(path: str, line: int, text: str, known: str) -> Mistake:
    """``known``: the path that could be sent; ``detail`` names it as a data folder, NAME=PATH."""
    fix = "Keep it beside the script and use a relative path, or see that every laptop has the same there."
    data = ""
    if known:
        name = _NO_NAME.sub("-", Path(known).expanduser().stem)[:40] or "data"
        data = f"{name}={known}"
        fix = (
            f"Send it along: --data {spelled(shlex.quote(data))} (in the window, Data folders in Options). "
            "Laptops that have the same data use their own. Or keep it beside the script and use a relative "
            "path."
        )
    return Mistake(
        code=CODE,
        path=path,
        line=line,
        what=f"{shown(text)} is outside the project: each laptop has its own, or none. Keras saves there "
        "only on the chief, and all laptops load the chief's files.",
        fix=fix,
        detail=data,
    )


def _above(path: str, line: int, text: str, whole: Path) -> Mistake:
    return Mistake(
        code=CODE,
        path=path,
        line=line,
        what=f"{shown(text)} is outside the project: the other laptops do not have it.",
        fix="Move it into the script's folder, or write its full path, so that it can be sent: "
        f"{shown(str(whole))}",
    )


def _left_out(path: str, line: int, text: str, *, broad: bool) -> Mistake:
    own_folder = "Move the script and the file into a folder of their own."
    by_rule = f"To send it, too, add the line !{shown(text)} to {TANDEM_RULES} beside the script."
    return Mistake(
        code=CODE,
        path=path,
        line=line,
        what=f"{shown(text)} is not sent with the script: the other laptops do not have it.",
        fix=own_folder if broad else by_rule,
    )
