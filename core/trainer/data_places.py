"""Leads a script to its data if this laptop has it in another place than the script names.

TensorFlow opens files itself, so the source is changed before it is compiled: a string that begins with a
data folder's path begins with this laptop's path instead. The files on disk stay unchanged.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from typing import Any

_NOT_IN_STRINGS = re.compile(r"[\"'\\{}\n]")


class Places:
    """``data``: paths on this laptop by path in the source. ``folder``: the script's."""

    def __init__(self, data: Mapping[str, str], folder: Path) -> None:
        # Security invariant: a path stays inside a string. One such as ``/a" if ok else "/a`` would remove
        # code that this user has read.
        fits = (each for each in data.items() if not any(map(_NOT_IN_STRINGS.search, each)))
        self._data = dict(fits)
        self._folder = folder
        paths = "|".join(re.escape(path) for path in sorted(self._data, key=len, reverse=True))
        self._string = re.compile(rf"(?<=[\"'])({paths})(?=[/\"'])")
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
        return self._string.sub(lambda found: self._data[found[1]], text) if self._data else text

    def argument(self, argument: str) -> str:
        """``PATH``, or ``--option=PATH``."""
        found = self._argument.fullmatch(argument) if self._data else None
        return argument if found is None else f"{found[1]}{self._data[found[2]]}{found[3]}"
