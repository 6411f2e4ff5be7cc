"""Regular files, opened for reading or moved without following a link or waiting on a pipe."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Self

READ_BYTES = 1 << 20
"""Bytes per read."""
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = _FLAGS | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER = _FLAGS | getattr(os, "O_DIRECTORY", 0)


class NotRegular(Exception):
    """A link, device, pipe, socket or folder stands where a file was expected."""


def open_regular(path: Path | str, parent: int | None = None, *, buffering: int = -1) -> BinaryIO:
    """Open for reading. Raises ``NotRegular``, ``OSError``. Never follows a link, never waits on a pipe.

    ``parent``: descriptor of the folder that a relative path begins at. ``buffering``: 0 makes fewer system
    calls.
    """
    if not hasattr(os, "O_NOFOLLOW") and Path(path).is_symlink():
        raise NotRegular(str(path))
    try:
        opened = os.open(path, _FILE, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotRegular(str(path)) from error
        raise
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return os.fdopen(opened, "rb", buffering)
    os.close(opened)
    raise NotRegular(str(path))


class Folder:
    """Opens and moves files below a folder; no folder on the path may be a link either. For one thread.

    Opens each step by descriptor: anybody who can write there could replace a folder by a link between check
    and open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parent, self._descriptor = "", -1
        """The subfolder that was used last, and is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def open_regular(self, inside: str, *, buffering: int = -1) -> BinaryIO:
        """``inside``: with ``/``. Raises ``NotRegular``, ``OSError``."""
        name, parent = self._find(inside)
        return open_regular(name, parent, buffering=buffering)

    def move(self, inside: str, target: Path) -> None:
        """Move a file to ``target`` on the same disk. Makes its folder, and replaces an existing file. Raises
        ``NotRegular``, ``OSError``."""
        name, parent = self._find(inside)
        if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise NotRegular(inside)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.rename(name, target, src_dir_fd=parent)

    def _find(self, inside: str) -> tuple[str, int | None]:
        """A file's name and the descriptor of its folder; or its path and None, on systems without these."""
        parent, _, name = inside.rpartition("/")
        if os.open in os.supports_dir_fd:
            if self._descriptor < 0 or parent != self._parent:
                self._enter(parent)
            return name, self._descriptor
        at = self._path
        for step in filter(None, parent.split("/")):
            at /= step
            if at.resolve() != at.parent.resolve() / step:
                raise NotRegular(str(at))
        return str(at / name), None

    def _enter(self, parent: str) -> None:
        self.close()
        at = os.open(self._path, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        for step in filter(None, parent.split("/")):
            above = at
            try:
                at = os.open(step, _FOLDER, dir_fd=above)
            finally:
                os.close(above)
        self._parent, self._descriptor = parent, at
