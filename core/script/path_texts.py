"""Evaluates a module's expressions for paths from its text alone: nothing is executed. Pure."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from core.script.syntax import SourceTree

HOME = "~"
_STEPS = 12
"""How deeply an expression is examined, names included."""
_LONGEST = 4096
_ABSOLUTE = re.compile(r"~(/|$)|/|[A-Za-z]:/")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_HOME_VARIABLE = re.compile(r"\$(HOME(?=/|$)|\{HOME\})")
_JOINS = frozenset(["os.path.join", "posixpath.join", "tensorflow.io.gfile.join"])
_TYPES = frozenset(
    ["Path", "PurePath"] + [f"pathlib.{name}" for name in ("Path", "PurePath", "PosixPath", "PurePosixPath")]
)
"""The first two: imported with ``*``."""
_KEEPS = frozenset(
    ["str", "os.fspath"]
    + [f"os.path.{name}" for name in ("expanduser", "expandvars", "abspath", "realpath", "normpath")]
)
_METHODS = frozenset(["expanduser", "resolve", "absolute", "as_posix"])
_HOMES = frozenset(["os.environ.get", "os.getenv"])


class PathText(NamedTuple):
    """A path, or its beginning. ``parts``: the nodes that gave it."""

    text: str
    is_whole: bool = True
    parts: tuple[ast.AST, ...] = ()

    @property
    def is_absolute(self) -> bool:
        """Below the home (``~``) counts, too."""
        return _ABSOLUTE.match(self.text) is not None


class PathTexts:
    """The paths in one module's text. A name's value counts only if the module sets the name exactly once.

    ``unknown_is_here``: an unknown folder at the beginning of a path is assumed to be the script's.
    """

    def __init__(self, source: SourceTree, *, unknown_is_here: bool = False) -> None:
        self._source, self._unknown_is_here = source, unknown_is_here
        self._known: dict[tuple[ast.AST, int], PathText | None] = {}

    def of(self, node: ast.AST, steps: int = _STEPS) -> PathText | None:
        """The path of an expression; None if it is no path, or its beginning is unknown."""
        if not steps:
            return None
        if (node, steps) not in self._known:
            found = self._of(node, steps - 1)
            if found is not None:
                is_too_long = len(found.text) > _LONGEST
                found = None if is_too_long else found._replace(parts=(node, *found.parts))
            self._known[node, steps] = found
        return self._known[node, steps]

    def joined(self, node: ast.AST) -> Sequence[ast.expr]:
        """The operands of an expression that joins paths: an absolute one replaces those before it."""
        match node:
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                return (left, right)
            case ast.Call(func=func, args=[_, *_] as args, keywords=[]) if not _has_star(args):
                if (name := self._source.dotted(func)) in _JOINS or (name in _TYPES and len(args) > 1):
                    return args
                if isinstance(func, ast.Attribute) and func.attr == "joinpath":
                    return (func.value, *args)
        return ()

    def summed(self, node: ast.AST) -> Sequence[ast.expr]:
        """The operands of an expression that concatenates text: a sum, or an f-string."""
        match node:
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return (left, right)
            case ast.JoinedStr(values=values):
                return values
        return ()

    def join(self, operands: Sequence[ast.expr], steps: int = _STEPS) -> Iterator[PathText | None]:
        """The path up to each operand."""
        path = PathText("") if self._unknown_is_here else None
        for number, operand in enumerate(operands):
            part = self.of(operand, steps)
            if part is not None and (part.is_absolute or not number):
                path = part
            elif number and path is not None and path.is_whole:
                before = path.text and f"{path.text.rstrip('/')}/"
                if part is None:
                    path = PathText(before, is_whole=False, parts=path.parts)
                else:
                    path = PathText(before + part.text, part.is_whole, path.parts + part.parts)
            yield path

    def _of(self, node: ast.AST, steps: int) -> PathText | None:
        if operands := self.joined(node):
            return [*self.join(operands, steps)][-1]
        if operands := self.summed(node):
            return self._sum(operands, steps)
        match node:
            case ast.Constant(value=str(text)):
                text = _HOME_VARIABLE.sub(HOME, text) if text.startswith("$") else text
                return PathText(text.replace("\\", "/") if _DRIVE.match(text) else text)
            case ast.Name(id="__file__"):
                return PathText(self._source.path)
            case ast.Name(id=name):
                values = [*self._source.values(node)]
                if len(values) == 1 and values[0] is not node and self._bindings[name] == 1:
                    found = self.of(values[0], steps)
                    return None if found is None else found._replace(parts=())
            case ast.FormattedValue(value=value, conversion=-1 | 115, format_spec=None):
                return self.of(value, steps)
            case ast.Attribute(attr="parent", value=value):
                return self._parent(value, steps)
            case ast.Subscript(
                value=ast.Attribute(attr="parents", value=value), slice=ast.Constant(value=int(up))
            ) if 0 <= up < _STEPS:
                return self._parent(value, steps, up + 1)
            case ast.Subscript(value=value, slice=ast.Constant(value="HOME")):
                return PathText(HOME) if self._source.dotted(value) == "os.environ" else None
            case ast.BinOp(op=ast.Mod(), left=left):
                return _until("%", self.of(left, steps))
            case ast.Call():
                return self._of_call(node, steps)
        return None

    def _of_call(self, node: ast.Call, steps: int) -> PathText | None:
        name = self._source.dotted(node.func)
        match node:
            case ast.Call(func=ast.Attribute(attr="format", value=value)):
                return _until("{", self.of(value, steps))
            case ast.Call(args=[]) if name == "pathlib.Path.home":
                return PathText(HOME)
            case ast.Call(args=[ast.Constant(value="HOME"), *_]) if name in _HOMES:
                return PathText(HOME)
            case ast.Call(args=[value], keywords=[]) if name in _KEEPS | _TYPES:
                return self.of(value, steps)
            case ast.Call(args=[value]) if name == "os.path.dirname":
                return self._parent(value, steps)
            case ast.Call(func=ast.Attribute(attr=attr, value=value), args=[]) if attr in _METHODS:
                return self.of(value, steps)
        return None

    def _sum(self, operands: Sequence[ast.expr], steps: int) -> PathText | None:
        text, parts = "", list[ast.AST]()
        if self._unknown_is_here and self.of(operands[0], steps) is None:
            second = self.of(operands[1], steps) if len(operands) > 1 else None
            if second is not None and second.text.startswith("/"):
                text, operands = ".", operands[1:]
        for number, operand in enumerate(operands):
            part = self.of(operand, steps)
            if part is None:
                return PathText(text, is_whole=False, parts=tuple(parts)) if number else None
            text += part.text
            parts += part.parts
            if not part.is_whole:
                return PathText(text, is_whole=False, parts=tuple(parts))
        return PathText(text, parts=tuple(parts))

    def _parent(self, node: ast.expr, steps: int, up: int = 1) -> PathText | None:
        path = self.of(node, steps)
        if path is None or not path.is_whole or path.text == HOME:
            return None
        return path._replace(text=posixpath.normpath(posixpath.join(path.text, *[".."] * up)))

    @cached_property
    def _bindings(self) -> Counter[str]:
        """How often each name is set, by whatever statement."""
        found = Counter[str]()
        for node in self._source.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    found[name] += 1
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found[name] += 1
                case ast.alias(name=name, asname=asname):
                    found[asname or name.partition(".")[0]] += 1
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    found.update(names)
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                    found[name] += 1
        return found


def _has_star(args: Sequence[ast.expr]) -> bool:
    return any(isinstance(each, ast.Starred) for each in args)


def _until(mark: str, path: PathText | None) -> PathText | None:
    """The path up to the first placeholder."""
    if path is None or mark not in path.text:
        return path
    return path._replace(text=path.text.partition(mark)[0], is_whole=False)
