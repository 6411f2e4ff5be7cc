"""One node per home. The system frees the lock when its process ends, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from core.vocabulary.errors import TandemError

if sys.platform == "win32":
    import msvcrt

    def _seize(descriptor: int) -> None:
        # Lock one byte far behind the text, so that others can still read which process holds the file.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class HomeLock:
    """Held from ``acquire`` to ``release``."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path) -> HomeLock:
        """Lock the home. Raises ``TandemError`` (``home-held``) with the process that holds it."""
        # O_NOFOLLOW: a link in the lock's place must not redirect the write.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise TandemError(
                code="home-unusable",
                what=f"The lock {path} can't be opened ({error.strerror or error}).",
                fix="Delete it if it is not an ordinary file, or name another home with --home DIR.",
            ) from error
        try:
            _seize(descriptor)
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            os.close(descriptor)
            raise TandemError(
                code="home-held",
                what=f"Another Tandem{_holder(path)} already runs in {path.parent}.",
                fix="Use that one, or start this one with another home: --home DIR.",
            ) from error
        return cls(descriptor)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors for a child (``pass_fds``), so that the lock lasts until the child has ended, too; none
        where a child cannot inherit it."""
        if sys.platform == "win32" or self._descriptor is None:
            return ()
        return (self._descriptor,)

    def release(self) -> None:
        """May be called twice. The file stays: deleting it would let two processes lock two files of one
        name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(path: Path) -> str:
    try:
        return f" (process {int(path.read_text()[:20])})"
    except (OSError, ValueError):
        return ""
