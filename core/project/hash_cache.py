"""Caches hashes of a folder's files between readings, so that unchanged files are not read again.

Blocks: use a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from pathlib import Path

import msgspec

from core.home.private_file import make_private_folder, write_atomically
from core.project.files import UNWATCHED, ReadMeter, hash_file
from core.vocabulary.bounds import FilePath, Word
from core.vocabulary.errors import TandemError

FOLDERS_KEPT = 50
"""Number of folders cached, the newest ones."""
SETTLED_NS = 2_000_000_000
"""Some file systems store times in steps of two seconds: a later change may not show."""


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """Shows whether a file changed. ``ctime_ns``: programs can set the other time back, but not this one."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class KnownHash(msgspec.Struct, frozen=True, array_like=True):
    stamp: Stamp
    sha256: Word


_Known = dict[FilePath, KnownHash]
_DECODER = msgspec.msgpack.Decoder(_Known)


class HashCache:
    """For one reading of ``folder``, or of one file, whose ``inside`` is empty; call ``save`` afterwards.
    ``place``: the folder with all cached hashes.

    Caches only files that had not changed for ``settled_ns`` when they were read. A wrong hash does no harm:
    sending, copying and running a file hashes it again.
    """

    def __init__(self, folder: Path, place: Path, settled_ns: int = SETTLED_NS) -> None:
        self._folder, self._settled_ns = folder, settled_ns
        self._path = place / hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
        self._now: _Known = {}
        try:
            self._before = _DECODER.decode(self._path.read_bytes())
        except (OSError, msgspec.DecodeError):
            self._before = {}

    def hash_file(self, inside: str, meter: ReadMeter = UNWATCHED) -> tuple[int, str]:
        """As ``files.hash_file``, for a file in the folder."""
        path = self._folder / inside
        stamp, known = _stamp(path), self._before.get(inside)
        if stamp is None or known is None or known.stamp != stamp:
            read_ns = time.time_ns()
            size, sha256 = hash_file(path, meter)
            if stamp is None or _stamp(path) != stamp:
                return size, sha256
            if max(stamp.mtime_ns, stamp.ctime_ns) + self._settled_ns >= read_ns:
                return size, sha256
            known = KnownHash(stamp, sha256)
        else:
            meter.add(known.stamp.size)
        self._now[inside] = known
        return known.stamp.size, known.sha256

    def save(self) -> None:
        """Save for the next reading. A failing disk only costs time."""
        if self._now == self._before:
            return
        with contextlib.suppress(OSError, TandemError):
            make_private_folder(self._path.parent)
            write_atomically(self._path, msgspec.msgpack.encode(self._now))
            newest = sorted(self._path.parent.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
            for old in newest[FOLDERS_KEPT:]:
                old.unlink()


def _stamp(path: Path) -> Stamp | None:
    """None: not a regular file, or inaccessible."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
