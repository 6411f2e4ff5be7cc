"""Leads a script to its data if this laptop has it in another place than the script names.

TensorFlow opens files itself, so the source is changed before it is compiled: a string that begins with a
data folder's path begins with this laptop's path instead. So does one that follows ``Path.home() /``, or the
home in ``os.path.join``: joined to an absolute path, the home is dropped. The files on disk stay unchanged.
"""

from __future__ import annotations

import io
import linecache
import re
import tokenize
from collections.abc import Iterator, Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from typing import Any

_NOT_IN_STRINGS = re.compile(r"[\"'\\{}\n]")
_OPENING = re.compile(r"[A-Za-z]*(\"\"\"|'''|\"|')")
_AFTER_HOME = re.compile(r"(.*\W)?(Path\.home\(\)/|join\((os\.path\.)?expanduser\([\"']~[\"']\),)")
_TOKENS = 12
"""The longest text before a string that ``_AFTER_HOME`` reads."""
_STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_START", tokenize.STRING))
_BLANK = (tokenize.NL, tokenize.COMMENT)


class Places:
    """``data``: paths on this laptop by path in the source. ``folder``: the script's."""

    def __init__(self, data: Mapping[str, str], folder: Path) -> None:
        # Security invariant: a path stays inside a string. One such as ``/a" if ok else "/a`` would remove
        # code that this user has read.
        fits = (each for each in data.items() if not any(map(_NOT_IN_STRINGS.search, each)))
        self._data = dict(fits)
        self._folder = folder
        paths = "|".join(re.escape(path) for path in sorted(self._data, key=len, reverse=True))
        self._path = re.compile(rf"({paths})(?=[/\"'])")
        self._argument = re.compile(rf"((?:--?[\w-]+=)?)({paths})((?:/.*)?)", re.DOTALL)

    def install(self) -> None:
        """From here on, imported modules of the script's folder find the data, too."""
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
        if not self._data:
            return text
        try:
            begins = list(_strings(text))
        except (SyntaxError, tokenize.TokenError):
            return text  # Compiling it reports the error.
        changed, at = [], 0
        for begin, is_below_home in begins:
            before = "~/" if is_below_home else ""
            found = self._path.match(before + text[begin:]) if before else self._path.match(text, begin)
            if found is not None:
                changed += [text[at:begin], self._data[found[1]]]
                at = begin + len(found[1]) - len(before)
        return "".join([*changed, text[at:]])

    def argument(self, argument: str) -> str:
        """``PATH``, or ``--option=PATH``."""
        found = self._argument.fullmatch(argument) if self._data else None
        return argument if found is None else f"{found[1]}{self._data[found[2]]}{found[3]}"


def _strings(text: str) -> Iterator[tuple[int, bool]]:
    """Where each string's content begins, and whether it is joined to the home. Raises ``SyntaxError`` and
    ``TokenError``."""
    lines, starts = io.StringIO(text).readlines(), [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    before: list[str] = []
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type in _STRINGS and (opening := _OPENING.match(token.string)):
            at = starts[token.start[0] - 1] + token.start[1]
            if text.startswith(opening[0], at):
                yield at + opening.end(), _AFTER_HOME.fullmatch("".join(before)) is not None
        if token.type not in _BLANK:
            before = [*before[1 - _TOKENS :], token.string]
