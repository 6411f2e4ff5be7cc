"""Regular files under a folder: found without following links, hashed in pieces."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from core.runtime.regular_file import READ_BYTES, open_regular
from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import LIMIT_LISTING_BYTES
from core.vocabulary.paths import shown, why_unsafe

ENTRIES_SEEN = 200_000
"""A folder with more entries is no project, and listing it would keep a person waiting."""
REPORT_S = 1.0
"""Interval of progress reports; shorter work is not reported."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not sent, and why (a clause). ``path`` is fit to show, not to open."""

    path: str
    why: str


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A regular file as listed, not yet read."""

    path: str
    size: int


class FolderListing(msgspec.Struct, frozen=True, kw_only=True):
    files: tuple[FoundFile, ...]
    skipped: tuple[Skipped, ...]

    def fits(self, most_files: int) -> bool:
        """Whether one list of files can hold them all."""
        hashes_bytes = 90 * len(self.files)
        size = len(wire.to_json(self.files)) + hashes_bytes
        return len(self.files) <= most_files and size <= LIMIT_LISTING_BYTES


class ReadMeter:
    """Progress of reading files: calls ``tell(done, total)``, in bytes, at most once in ``every_s``. For one
    thread."""

    def __init__(
        self,
        tell: Callable[[int, int], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        every_s: float = REPORT_S,
    ) -> None:
        self._tell, self._clock, self._every_s = tell, clock, every_s
        self._last_s = clock()
        self._done = self._total = 0

    def expect(self, size: int) -> None:
        """Add ``size`` bytes to the total."""
        self._total += size

    def add(self, size: int) -> None:
        """Count ``size`` bytes as done: they were read, or need no reading."""
        self._done += size
        self._total = max(self._total, self._done)  # a file has grown
        if (now_s := self._clock()) - self._last_s >= self._every_s:
            self._last_s = now_s
            self._tell(self._done, self._total)


UNWATCHED = ReadMeter(lambda done, total: None)


def hash_file(path: Path, meter: ReadMeter = UNWATCHED) -> tuple[int, str]:
    """Size and SHA-256 of the file's content. Raises ``NotRegular``, ``OSError``."""
    with open_regular(path) as file:
        return hash_open(file, meter)


def hash_open(file: BinaryIO, meter: ReadMeter = UNWATCHED) -> tuple[int, str]:
    """As ``hash_file``, for the unread rest of an open file. Raises ``OSError``."""
    digest, size = hashlib.sha256(), 0
    while data := file.read(READ_BYTES):
        digest.update(data)
        size += len(data)
        meter.add(len(data))
    return size, digest.hexdigest()


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes of files. ``alone``: of files with one name; ``shared``: of each file with several names (hard
    links), by device and inode."""

    alone: int = 0
    shared: Mapping[tuple[int, int], int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.alone + sum(self.shared.values())

    def __or__(self, other: DiskUse) -> DiskUse:
        """Both together: a file that is in both counts once."""
        return DiskUse(self.alone + other.alone, {**self.shared, **other.shared})

    def beyond(self, other: DiskUse) -> int:
        """Bytes that are not in the other."""
        return self.alone + sum(size for file, size in self.shared.items() if file not in other.shared)


def disk_use(*paths: Path) -> DiskUse:
    """The size of all these files and folders, however deeply nested. Never raises.

    Links are not followed; links and unreadable files count as 0 bytes.
    """
    alone, shared, waiting = 0, dict[tuple[int, int], int](), list(paths)
    while waiting:
        each = waiting.pop()
        try:
            state = each.lstat()
            if stat.S_ISDIR(state.st_mode):
                waiting += each.iterdir()
            elif stat.S_ISREG(state.st_mode) and state.st_nlink > 1:
                shared[state.st_dev, state.st_ino] = state.st_size
            elif stat.S_ISREG(state.st_mode):
                alone += state.st_size
        except OSError:
            continue
    return DiskUse(alone, shared)


def list_files(
    folder: Path,
    *,
    enter: Callable[[str], object] = lambda inside: None,
    leave_out: Callable[[str, bool], str | None] = lambda path, is_folder: None,
    most_entries: int = ENTRIES_SEEN,
) -> FolderListing:
    """Every regular file under ``folder``, by name, except those that ``leave_out(path, is_folder)``
    excludes.

    ``leave_out`` returns the reason to report, ``""`` to exclude an entry without a report, or None to list
    it. Links, devices and names that may not travel are skipped with their reason. ``enter`` is called with
    each folder before its entries. Raises ``TandemError`` where ``folder`` is unreadable or has too many
    entries.
    """
    files: list[FoundFile] = []
    skipped: list[Skipped] = []
    waiting, seen = [""], 0
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as entries:
                present = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not inside:
                raise _unreadable(folder, error) from error
            skipped.append(Skipped(path=shown(inside), why="its folder cannot be read"))
            continue
        seen += len(present)
        if seen > most_entries:
            raise _endless(folder, most_entries)
        enter(inside)
        for entry in present:
            path = f"{inside}/{entry.name}" if inside else entry.name
            try:
                is_folder = entry.is_dir(follow_symlinks=False) and not _is_junction(entry)
                reason = leave_out(path, is_folder)
                if reason is None:
                    reason = why_unsafe(path) or _why_not_regular(entry, is_folder)
                if reason is None and not is_folder:
                    files.append(FoundFile(path=path, size=entry.stat(follow_symlinks=False).st_size))
            except OSError:
                reason = "it has disappeared or cannot be examined"
            if reason:
                skipped.append(Skipped(path=shown(path), why=reason))
            elif reason is None and is_folder:
                waiting.append(path)
    return FolderListing(files=tuple(sorted(files, key=lambda file: file.path)), skipped=tuple(skipped))


def _why_not_regular(entry: os.DirEntry[str], is_folder: bool) -> str | None:
    if entry.is_symlink() or _is_junction(entry):
        return "it is a link"
    if not is_folder and not entry.is_file(follow_symlinks=False):
        return "it is neither a file nor a folder"
    return None


def _is_junction(entry: os.DirEntry[str]) -> bool:
    """Windows' other kind of link; the standard library detects it from Python 3.12 on."""
    attributes: int = getattr(entry.stat(follow_symlinks=False), "st_file_attributes", 0)
    return bool(attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT) and not entry.is_symlink()


def _unreadable(folder: Path, error: OSError) -> TandemError:
    return TandemError(
        code="folder-unreadable",
        what=f"The folder {shown(str(folder))} cannot be read ({error.strerror}).",
        fix="Check that it is there and that you may open it.",
    )


def _endless(folder: Path, most_entries: int) -> TandemError:
    return TandemError(
        code="project-too-large",
        what=f"The folder {shown(str(folder))} holds more than {most_entries:,} files and folders.",
        fix="Use a folder with only the files that the script needs.",
    )
