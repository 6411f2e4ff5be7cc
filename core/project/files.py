"""Regular files under a folder: found without following links, opened without waiting, hashed in pieces."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from core.vocabulary.errors import TandemError
from core.vocabulary.paths import shown, why_unsafe

READ_BYTES = 1 << 20
ENTRIES_SEEN = 200_000
"""A folder with more is no project; listing it would keep a person waiting."""


class NotRegular(Exception):
    """A link, device, pipe, socket or folder stands where a file was expected."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Something that stays behind, and why (a clause). ``path`` is fit to show, not to open."""

    path: str
    why: str


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A regular file as listed, not yet read."""

    path: str
    size: int


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    files: tuple[FoundFile, ...]
    skipped: tuple[Skipped, ...]


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open for reading. Raises ``NotRegular``, ``OSError``. Never follows a link, never waits on a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    if path.is_symlink():
        raise NotRegular(str(path))
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotRegular(str(path))
        yield file


def hash_file(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of what is read. Raises ``NotRegular``, ``OSError``."""
    digest, size = hashlib.sha256(), 0
    with open_regular(path) as file:
        while data := file.read(READ_BYTES):
            digest.update(data)
            size += len(data)
    return size, digest.hexdigest()


def list_files(
    folder: Path,
    *,
    enter: Callable[[str], object] = lambda inside: None,
    leave_out: Callable[[str, bool], str | None] = lambda path, is_folder: None,
    most_entries: int = ENTRIES_SEEN,
) -> Listing:
    """Every regular file under ``folder``, by name, less those that ``leave_out(path, is_folder)`` names.

    It gives a reason, ``""`` for none worth telling, or None. Links, devices and names that may not travel
    are skipped with their reason. ``enter`` is called with each folder first. Raises ``TandemError`` where
    ``folder`` is unreadable or endless.
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
                reason = "it went away or cannot be looked at"
            if reason:
                skipped.append(Skipped(path=shown(path), why=reason))
            elif reason is None and is_folder:
                waiting.append(path)
    return Listing(files=tuple(sorted(files, key=lambda file: file.path)), skipped=tuple(skipped))


def _why_not_regular(entry: os.DirEntry[str], is_folder: bool) -> str | None:
    if entry.is_symlink() or _is_junction(entry):
        return "it is a link"
    if not is_folder and not entry.is_file(follow_symlinks=False):
        return "it is neither a file nor a folder"
    return None


def _is_junction(entry: os.DirEntry[str]) -> bool:
    """Windows' other kind of link; the standard library knows it from Python 3.12 on."""
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
        fix="Put the script into a folder of its own with only the files that it needs.",
    )
