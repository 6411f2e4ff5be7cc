"""Writes a project's files into new folders, checking each byte that it writes. Blocks: use a thread."""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.project.files import READ_BYTES, NotRegular, open_regular
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.paths import shown

SPARE_BYTES = 20_000_000
"""Left free on the disk: a laptop with a full disk is in worse trouble than a run that did not start."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Changed(Exception):
    """A file's content is not what the manifest says."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turns the disk's refusals into a ``TandemError`` with a mend."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(folder) from error
        raise TandemError(
            code="storage-failed",
            what=f"Files cannot be written to {shown(str(folder))} ({error.strerror or error}).",
            fix="Make the folder writable for you, or name another home with --home DIR.",
            detail=repr(error),
        ) from error


def check_room(folder: Path, size: int) -> None:
    """Raises ``TandemError`` where ``size`` bytes would fill the disk below ``folder``."""
    with storing(folder):
        if shutil.disk_usage(folder).free < size + SPARE_BYTES:
            raise _disk_full(folder, size)


def copy_project(manifest: Manifest, source: Path, destination: Path) -> None:
    """Copy a manifest's files from ``source`` into ``destination``, a new folder; nothing else is copied.

    What is hashed is what was written, so nobody can change a file between check and use. Raises
    ``Changed`` (and leaves no folder behind), or ``TandemError`` where the disk refuses.
    """
    with storing(destination):
        destination.mkdir(mode=0o700, parents=True)
        try:
            check_room(destination, manifest.total_bytes)
            for file in manifest.files:
                target = destination.joinpath(*file.path.split("/"))
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                copy_file(file, source.joinpath(*file.path.split("/")), target)
        except BaseException:
            shutil.rmtree(destination, ignore_errors=True)
            raise


def copy_file(file: ProjectFile, source: Path, target: Path) -> None:
    """Copy one file into ``target``, which must not exist. Raises ``Changed`` or ``OSError``."""
    digest, left = hashlib.sha256(), file.size
    try:
        opened = open_regular(source)
        with opened as reader, target.open("xb") as writer:
            while data := reader.read(min(READ_BYTES, left + 1)):
                left -= len(data)
                if left < 0:
                    break
                digest.update(data)
                writer.write(data)
    except (FileNotFoundError, NotADirectoryError, NotRegular) as error:
        raise Changed(file.path) from error
    if left != 0 or digest.hexdigest() != file.sha256:
        target.unlink()
        raise Changed(file.path)


def _disk_full(folder: Path, size: int = 0) -> TandemError:
    needed = f": {size / 1e6:,.1f} MB are needed" if size else ""
    return TandemError(
        code="disk-full",
        what=f"The disk that holds {shown(str(folder))} is full{needed}.",
        fix="Free some space on this laptop and start the run again.",
    )
