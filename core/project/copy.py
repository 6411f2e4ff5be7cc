"""Writes a project's files into new folders, verifying each byte that it writes. Blocks: use a thread."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from core.project.files import UNWATCHED, ReadMeter, hash_open
from core.runtime.regular_file import READ_BYTES, Folder, NotRegular, open_regular
from core.vocabulary import units
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.paths import shown
from core.vocabulary.plan import Task
from core.vocabulary.run_folder import TASKS, WORK, task_name

SPARE_BYTES = 20_000_000
"""Space left free on the disk: a full disk is worse than a run that did not start."""

_FICLONE = 0x40049409
_CLONED_BYTES = 1 << 16
"""Smaller files are copied: asking the file system to share their blocks takes longer."""
_WINDOWS_LONG = 260
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Changed(Exception):
    """A file's content differs from the manifest."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turns disk errors into a ``TandemError`` with a fix."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(folder) from error
        if is_too_long(error):
            raise TandemError(
                code="path-too-long",
                what=f"A path below {shown(str(folder))} is too long for this system.",
                fix="Use a home with a shorter path (--home DIR), or shorten the paths of the files.",
            ) from error
        raise TandemError(
            code="storage-failed",
            what=f"Files cannot be written to {shown(str(folder))} ({error.strerror or error}).",
            fix="Make the folder writable, or use another home: --home DIR.",
            detail=repr(error),
        ) from error


def is_too_long(error: OSError, *, on_windows: bool = os.name == "nt") -> bool:
    """Whether a path was too long. Windows reports such a path as not found."""
    paths = (str(path or "") for path in (error.filename, error.filename2))
    is_windows_long = on_windows and any(len(path) >= _WINDOWS_LONG for path in paths)
    return error.errno == errno.ENAMETOOLONG or is_windows_long


def check_paths(manifest: Manifest, folder: Path, disk: Path) -> None:
    """Raises ``TandemError`` where a file's path below ``folder`` would be too long for this system.
    ``disk``: a folder on the same disk that exists."""
    with storing(folder):
        most, most_name = _longest(disk)
        before = len(_encoded(str(folder))) + 1
        for file in manifest.files:
            inside = _encoded(file.path)
            if before + len(inside) > most or any(len(name) > most_name for name in inside.split(b"/")):
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), f"{folder}/{file.path}")


def _longest(disk: Path) -> tuple[float, float]:
    """Maximum lengths of a path and of a name there, as ``_encoded``."""
    if sys.platform == "win32":
        import ctypes

        allowed = getattr(ctypes.WinDLL("ntdll"), "RtlAreLongPathsEnabled", None)  # since Windows 10, 1607
        return math.inf if allowed is not None and allowed() & 0xFF else _WINDOWS_LONG - 1, math.inf
    path, name = (os.pathconf(disk, limit) for limit in ("PC_PATH_MAX", "PC_NAME_MAX"))
    return path - 1 if path > 0 else math.inf, name if name > 0 else math.inf  # a path ends with a zero


def _encoded(path: str) -> bytes:
    """The path, with one byte for each unit in which the system counts its length: a character on Windows,
    otherwise a byte."""
    return path.encode("ascii", "replace") if os.name == "nt" else os.fsencode(path)


def check_room(folder: Path, size: int) -> None:
    """Raises ``TandemError`` where ``size`` bytes would fill the disk below ``folder``."""
    with storing(folder):
        if shutil.disk_usage(folder).free < size + SPARE_BYTES:
            raise _disk_full(folder, size)


def copy_project(manifest: Manifest, source: Path, destination: Path, meter: ReadMeter = UNWATCHED) -> None:
    """Copy a manifest's files from ``source`` into ``destination``, a new folder; nothing else is copied.

    The hash covers the written bytes, so nobody can change a file between check and use. Raises ``Changed``
    (and leaves no folder behind), or ``TandemError`` where the disk refuses.
    """
    with storing(destination):
        destination.mkdir(mode=0o700, parents=True)
        try:
            check_room(destination, manifest.total_bytes)
            meter.expect(manifest.total_bytes)
            with Folder(source) as opened:
                for file, target in laid_out(manifest, destination):
                    copy_file(file, partial(opened.open_regular, file.path, buffering=0), target, meter)
        except BaseException:
            shutil.rmtree(destination, ignore_errors=True)
            raise


def laid_out(manifest: Manifest, folder: Path) -> Iterator[tuple[ProjectFile, str]]:
    """Each file with its path below ``folder``, after making its folders."""
    made = ""
    for file in manifest.files:
        inside, _, _ = file.path.rpartition("/")
        if inside != made:
            folder.joinpath(*inside.split("/")).mkdir(mode=0o700, parents=True, exist_ok=True)
            made = inside
        yield file, f"{folder}/{file.path}"


def link_file(file: ProjectFile, source: Path, target: Path, meter: ReadMeter = UNWATCHED) -> None:
    """As ``copy_file``, but a hard link where the file system allows it: nobody may write to it afterwards.

    Raises ``Changed`` or ``OSError``, or ``TandemError`` where a copy would fill the disk.
    """
    with _opened(file, partial(open_regular, source)) as reader:
        if hash_open(reader, meter) != (file.size, file.sha256):
            raise Changed(file.path)
        read = os.fstat(reader.fileno())
        try:
            os.link(source, target, follow_symlinks=False)
        except (OSError, NotImplementedError):
            check_room(target.parent, file.size)
            copy_file(file, partial(open_regular, source), target, meter)
            return
    if not os.path.samestat(read, target.lstat()):
        target.unlink()
        raise Changed(file.path)


def copy_file(
    file: ProjectFile, source: Callable[[], BinaryIO], target: Path | str, meter: ReadMeter = UNWATCHED
) -> None:
    """Copy a file that ``source`` opens into ``target``, a new one. Raises ``Changed`` or ``OSError``."""
    digest, left = hashlib.sha256(), file.size
    # Without buffers, which cost thousands of small files more than copying them.
    with _opened(file, source) as reader, open(target, "x+b", buffering=0) as writer:  # noqa: PTH123
        is_clone = file.size >= _CLONED_BYTES and _clone(reader, writer)
        hashed = writer if is_clone else reader
        while data := hashed.read(min(READ_BYTES, left + 1)):
            left -= len(data)
            if left < 0:
                break
            digest.update(data)
            meter.add(len(data))
            unwritten = memoryview(b"" if is_clone else data)
            while unwritten:
                unwritten = unwritten[writer.write(unwritten) :]
    if left != 0 or digest.hexdigest() != file.sha256:
        os.unlink(target)  # noqa: PTH108
        raise Changed(file.path)


def _opened(file: ProjectFile, source: Callable[[], BinaryIO]) -> BinaryIO:
    try:
        return source()
    except (FileNotFoundError, NotADirectoryError, NotRegular) as error:
        raise Changed(file.path) from error


def _clone(source: BinaryIO, target: BinaryIO) -> bool:
    """Share the source's blocks with the target until one side writes (ioctl_ficlonerange(2)).

    False: this file system can't (btrfs and XFS can).
    """
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source.fileno())
    except OSError:
        return False
    return True


def _disk_full(folder: Path, size: int = 0) -> TandemError:
    needed = f": {units.size(size)} are needed" if size else ""
    return TandemError(
        code="disk-full",
        what=f"The disk that holds {shown(str(folder))} is full{needed}.",
        fix="Free some space on this laptop, perhaps with Clear in Settings, Stored files (tandem clear), "
        "and start the run again.",
    )


def working_copy_of(run: Path, task: Task) -> Path:
    """The working folder of one of the starter's own trainers. ``run``: the run's folder."""
    return run / TASKS / task_name(task.name) / WORK


def make_working_copy(
    manifest: Manifest, source: Path, run: Path, task: Task, meter: ReadMeter = UNWATCHED
) -> Path:
    """Copy the project into the task's working folder, and return that folder. Raises ``TandemError`` where a
    file has changed since the plan was made."""
    work = working_copy_of(run, task)
    try:
        copy_project(manifest, source, work, meter)
    except Changed as changed:
        raise TandemError(
            code="project-changed",
            what=f"{shown(changed.path)} changed while the run was being prepared.",
            fix="Save your files, let no other program write there, and start the run again.",
        ) from changed
    return work


class _Folder:
    """A folder's lock, and the number of its newest writer."""

    def __init__(self) -> None:
        self.lock, self.turn = threading.Lock(), 0


_folders: WeakValueDictionary[str, _Folder] = WeakValueDictionary()
_lock = threading.Lock()


class WritingTurn:
    """One writer's permission to write to a folder. A newer one for the same folder revokes it, after any
    write under way. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        with _lock:
            self._folder = _folders.setdefault(str(folder), _Folder())
        with self._folder.lock:
            self._folder.turn += 1
            self._own = self._folder.turn

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises ``TandemError`` once another turn has begun."""
        with self._folder.lock:
            if self._own != self._folder.turn:
                raise TandemError.of(_TAKEN_OVER)
            yield


_TAKEN_OVER = Problem(
    code="transfer-taken-over",
    what="Another run is now receiving the same files here.",
    fix="Start the run again when the other one has received them.",
)
