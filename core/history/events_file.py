"""The events of a run on disk, one JSON object per line, bounded: beyond the bound only the first and the
newest are kept.

Blocks: call only on the writer's thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 8 << 20
"""About 40,000 events: a day of a run that reports every two seconds which members it waits for."""


class EventsFile:
    """``add`` and ``close`` raise ``OSError``. ``shortened``: lines in the middle were dropped."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._path = path
        self._most = most_bytes
        self._file: BinaryIO | None = None
        self._size = 0
        self.shortened = False

    def add(self, line: bytes) -> None:
        """``line`` without its line end."""
        if self._size and self._size + len(line) >= self._most:
            self._shorten()
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
            self._size = self._file.tell()
        self._file.write(line + b"\n")
        self._size += len(line) + 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _shorten(self) -> None:
        """Keeps the first eighth, which includes the members' joining, and the newest half."""
        self.close()
        kept = self._path.read_bytes()
        first = kept[: kept.rfind(b"\n", 0, self._most // 8) + 1]
        newest = kept[-self._most // 2 :].partition(b"\n")[2]
        shorter = self._path.with_name(self._path.name + ".shorter")
        try:
            shorter.write_bytes(first + newest)
            shorter.replace(self._path)
        except OSError:
            shorter.unlink(missing_ok=True)
            raise
        self.shortened = True
