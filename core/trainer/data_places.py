"""Points a script at its data if this laptop stores it elsewhere than the script says.

TensorFlow opens files itself, so the source is changed before it is compiled: the text that names a data
folder becomes this laptop's path. Joining an absolute path drops what precedes it, so
``Path.home() / "photos"`` becomes ``Path.home() / "/store/ab"``. The files on disk stay unchanged.
"""

from __future__ import annotations

import ast
import glob
import linecache
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source
from itertools import accumulate
from pathlib import Path
from typing import Any

from core.script.imports import Module
from core.script.path_texts import PathText, PathTexts
from core.script.syntax import SourceTree

_NOT_IN_STRINGS = re.compile(r"[\"'\\{}\n]")
_MAGIC = re.compile(r"[*?[]")
_GLOBS = frozenset(
    ["glob.glob", "glob.iglob", "tensorflow.io.gfile.glob", "tensorflow.data.Dataset.list_files"]
)
_OPENING = re.compile(r"[A-Za-z]*(\"\"\"|'''|\"|')")


class Places:
    """``data``: paths on this laptop by path in the source. ``folder``: the script's."""

    def __init__(self, data: Mapping[str, str], folder: Path) -> None:
        # Security invariant: a path stays inside a string. One such as ``/a" if ok else "/a`` would remove
        # code that this user has read.
        given = ((path, Path(place).as_posix()) for path, place in data.items())
        fits = (each for each in given if not any(map(_NOT_IN_STRINGS.search, each)))
        self._data = dict(sorted(fits, key=lambda each: len(each[0]), reverse=True))
        self._folder = folder
        paths = "|".join(map(re.escape, self._data))
        self._argument = re.compile(rf"((?:--?[\w-]+=)?)({paths})((?:/.*)?)", re.DOTALL)

    def install(self) -> None:
        """Makes modules imported from the script's folder find the data, too."""
        if not self._data:
            return
        compile_source = SourceFileLoader.source_to_code
        own, folder = self.source, self._folder

        def source_to_code(loader: SourceFileLoader, data: Any, path: Any, **options: Any) -> Any:
            if isinstance(data, bytes) and Path(path).is_relative_to(folder):
                data = own(data, str(path))
            return compile_source(loader, data, path, **options)

        SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign, assignment]

    def source(self, source: bytes, path: str) -> bytes | str:
        """A module's source as compiled; tracebacks show it, and AutoGraph reads it again."""
        if not self._data:
            return source
        try:
            text = decode_source(source)
        except (SyntaxError, UnicodeDecodeError):
            return source  # Compiling it reports the error.
        changed = self.text(text)
        if changed == text:
            return source
        linecache.cache[path] = (len(changed), None, changed.splitlines(keepends=True), path)
        return changed

    def text(self, text: str) -> str:
        """The changed source; every line keeps its number."""
        if not self._data:
            return text
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        try:
            source = _Source(text)
            edits = sorted(self._edits(source))
        except (SyntaxError, ValueError, RecursionError):
            return text  # Compiling it reports the error.
        changed, at = b"", 0
        for begin, end, new in edits:
            changed += source.bytes[at:begin] + new
            at = end
        return (changed + source.bytes[at:]).decode()

    def argument(self, argument: str) -> str:
        """``PATH``, or ``--option=PATH``."""
        found = self._argument.fullmatch(argument) if self._data else None
        if found is None:
            return argument
        place = self._data[found[2]]
        return f"{found[1]}{glob.escape(place) if _MAGIC.search(found[3]) else place}{found[3]}"

    def _edits(self, source: _Source) -> Iterator[tuple[int, int, bytes]]:
        done = set[ast.AST]()
        if any("%" in place or _MAGIC.search(place) for place in self._data.values()):
            self._find_patterns(source)
        for node in source.tree.nodes:  # an expression before its parts
            if node not in done:
                for part, new in self._replacements(source, node):
                    done |= set(ast.walk(part))
                    if (edit := source.edit(part, new)) is not None:
                        yield edit
            if isinstance(node, ast.JoinedStr):
                done |= set(node.values)  # Python 3.11 gives them no positions.

    def _replacements(self, source: _Source, node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
        """Yields parts of an expression with their replacements."""
        paths = source.paths
        if operands := paths.joined(node):
            before = ""
            for operand, path in zip(operands, paths.join(operands), strict=True):
                reached, known = self._reached(path), paths.of(operand)
                if path and known and len(reached) > len(before) and not self._reached(known):
                    skip = len(reached) - len(path.text) + len(known.text)
                    yield from self._begin(source, operand, skip, self._data[reached])
                before = max(before, reached, key=len)
        elif operands := paths.summed(node):
            reached = self._reached(paths.of(node))
            if reached and isinstance(node, ast.expr):
                place, is_text = self._data[reached], isinstance(node, ast.JoinedStr)
                is_written = is_text and isinstance(operands[0], ast.Constant)
                is_escaped = is_text and source.escaped(node, place) != place
                # An operand that reaches the same data is replaced itself.
                if is_written or is_escaped or self._reached(paths.of(operands[0])) != reached:
                    yield from self._begin(source, node, len(reached), place)
        elif isinstance(node, ast.Constant) and (reached := self._reached(_text(paths, node))):
            yield from self._begin(source, node, len(reached), self._data[reached])
        elif isinstance(node, ast.Name) and (reached := self._reached(paths.of(node))):
            # A pattern only here: the assigned text is escaped nowhere else.
            place, values = self._data[reached], [*source.tree.values(node)]
            is_text = all(isinstance(each, ast.Constant) or paths.summed(each) for each in values)
            if is_text and source.escaped(node, place) != place:
                yield from self._begin(source, node, len(reached), place)

    def _find_patterns(self, source: _Source) -> None:
        for node in source.tree.nodes:
            match node:
                case ast.Call(func=func, args=[first, *_]) if source.tree.dotted(func) in _GLOBS:
                    source.patterns |= source.parts(first)
                case ast.BinOp(op=ast.Mod(), left=left):
                    source.formats |= source.parts(left)
            if node not in source.patterns:
                parts = source.parts(node)
                if any(self._has_magic(source, part) for part in parts):
                    source.patterns |= parts

    def _has_magic(self, source: _Source, node: ast.AST) -> bool:
        """Whether a literal has characters of a pattern, other than in the data's own path."""
        text = _text(source.paths, node) if isinstance(node, ast.Constant) else None
        return text is not None and _MAGIC.search(text.text, len(self._reached(text))) is not None

    def _reached(self, path: PathText | None) -> str:
        """The innermost data folder on the path, as the source names it; ``""``: none."""
        if path is None:
            return ""
        text = f"{path.text}/" if path.is_whole else path.text
        return next((data for data in self._data if text.startswith(f"{data}/")), "")

    def _begin(
        self, source: _Source, node: ast.expr, skip: int, place: str
    ) -> Iterator[tuple[ast.expr, str]]:
        """Replaces the first ``skip`` characters of a text with ``place``."""
        path = _text(source.paths, node)
        match node:
            case ast.Constant() | ast.JoinedStr():
                with suppress(ValueError):  # Python cannot write it that way.
                    yield node, source.begun(node, path, skip, source.escaped(node, place))
            case ast.BinOp(op=ast.Add() | ast.Mod(), left=left) if _reaches(source.paths.of(left), skip):
                yield from self._begin(source, left, skip, place)
            case ast.Call(func=ast.Attribute(attr="format", value=value)):
                yield from self._begin(source, value, skip, place)
            case _ if path is not None and path.is_whole:
                yield node, repr(source.escaped(node, place) + path.text[skip:])


class _Source:
    """A parsed module. Raises ``SyntaxError`` or ``ValueError`` if its text cannot be parsed."""

    def __init__(self, text: str) -> None:
        self.tree = SourceTree(Module(path="", tree=ast.parse(text)))
        self.paths = PathTexts(self.tree)
        self.bytes = text.encode()
        self.patterns, self.formats = set[ast.AST](), set[ast.AST]()
        """Expressions that ``glob`` or ``%`` reads."""
        self._starts = [0, *accumulate(len(line) + 1 for line in self.bytes.split(b"\n"))]

    def parts(self, node: ast.AST) -> set[ast.AST]:
        """An expression, and those in it that give its text or path. F-strings only with their own text."""
        found, waiting = set[ast.AST](), [node]
        while waiting:
            found.add(part := waiting.pop())
            match part:
                case ast.BinOp(op=ast.Mod(), left=left):
                    waiting.append(left)
                case ast.BinOp(left=left, right=right):
                    waiting += [left, right]
                case ast.JoinedStr(values=values):
                    waiting += [each for each in values if isinstance(each, ast.Constant)]
                case ast.Call(func=func, args=args) if self.paths.of(part) or self.paths.joined(part):
                    waiting += [func.value, *args] if isinstance(func, ast.Attribute) else args
        return found

    def escaped(self, node: ast.AST, place: str) -> str:
        """``place``, escaped if ``node`` is read as a pattern or a format."""
        place = place.replace("%", "%%") if node in self.formats else place
        return glob.escape(place) if node in self.patterns else place

    def edit(self, node: ast.expr, new: str) -> tuple[int, int, bytes] | None:
        """First byte, end, and the replacement; None if the code is not where Python says it is."""
        begin, end = self._span(node)
        old = self.bytes[begin:end].decode()
        try:
            is_it = ast.dump(ast.parse(f"({old})", mode="eval").body) == ast.dump(node)
        except SyntaxError:
            return None
        lines = old.count("\n") - new.count("\n")
        return (begin, end, (f"({new}" + "\n" * lines + ")" if lines else new).encode()) if is_it else None

    def begun(self, node: ast.Constant | ast.JoinedStr, path: PathText | None, skip: int, place: str) -> str:
        """The source of a text with ``place`` for its first ``skip`` characters; the rest as written."""
        assert path is not None
        begin, end = self._span(node)
        old = self.bytes[begin:end].decode()
        first = node if isinstance(node, ast.Constant) else node.values[0]
        if (opening := _OPENING.match(old)) is not None and _reaches(_text(self.paths, first), skip):
            before, text = opening[0], old[opening.end() :]
            is_writable = place.isascii() or "b" not in before.lower()
            if is_writable and text.startswith(path.text[:skip]):
                return before + place + text[skip:]
        if isinstance(node, ast.Constant):
            rest = path.text[skip:]
            is_bytes = isinstance(node.value, bytes)
            return repr(place.encode() + rest.encode("latin-1") if is_bytes else place + rest)
        return ast.unparse(ast.JoinedStr(values=self._values(node, skip, place)))

    def _values(self, node: ast.JoinedStr, skip: int, place: str) -> list[ast.expr]:
        values = list(node.values)
        while skip > 0:
            first = self.paths.of(values.pop(0))
            if first is None or not (first.is_whole or len(first.text) < skip):
                raise ValueError("a part whose end is unknown")
            rest, skip = first.text[skip:], skip - len(first.text)
        return [ast.Constant(place + rest), *values]

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset


def _text(paths: PathTexts, node: ast.AST) -> PathText | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
        return PathText(node.value.decode("latin-1"))
    return paths.of(node)


def _reaches(path: PathText | None, skip: int) -> bool:
    return path is not None and len(path.text) >= skip
