"""A trainer's output on disk, bounded: beyond the bound ``<name>`` becomes ``<name>.1``."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 16 * 1024 * 1024


class BoundedFile:
    """Never raises after ``__init__``: a full disk must not end a training. ``trouble`` reports it, once.

    ``shortened``: the oldest part is gone.
    """

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._path = path
        self._most = most_bytes
        self._size = 0
        self._file: BinaryIO | None = None
        self._is_reported = False
        self._trouble = ""
        self.shortened = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open("ab")
        except OSError as error:
            self._fail(error)

    def write(self, data: bytes) -> None:
        if not data:
            return
        try:
            if self._size + len(data) > self._most and self._size:
                self._turn()
            if self._file is None:
                self._open("ab")
            assert self._file is not None
            self._file.write(data)
            self._size += len(data)
        except OSError as error:
            self._fail(error)

    def trouble(self) -> str:
        """A sentence the first time something could not be written; ``""`` otherwise."""
        words, self._trouble = self._trouble, ""
        return words

    def close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._fail(error)
            self._file = None

    def _open(self, mode: str) -> None:
        # Unbuffered: the script's last output is on disk if it crashes the machine.
        self._file = self._path.open(mode, buffering=0)  # type: ignore[assignment]
        self._size = self._path.stat().st_size

    def _turn(self) -> None:
        self.close()
        before = self._path.with_name(self._path.name + ".1")
        self.shortened = before.exists()
        self._path.replace(before)
        self._open("wb")

    def _fail(self, error: OSError) -> None:
        if not self._is_reported:
            self._is_reported = True
            self._trouble = (
                f"The log {self._path.name} cannot be written ({error.strerror or error}); "
                "the training goes on, but its log has gaps. Free some disk space."
            )
