"""Files that only their owner may access: complete or absent after a crash, checked at each reading.

Blocks: use a thread.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from pathlib import Path

from core.runtime.regular_file import NotRegular, open_regular
from core.vocabulary.errors import TandemError

MAX_BYTES = 4 * 1024 * 1024


def make_private_folder(folder: Path) -> None:
    """Make ``folder`` (0700) or check that it is the user's own and nobody else's."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(folder, folder.lstat(), folder=True)
    except OSError as error:
        raise TandemError(
            code="folder-unusable",
            what=f"The folder {folder} can't be made or read ({error.strerror or error}).",
            fix="Make it writable for you, or choose another home with --home DIR.",
        ) from error


def read_private(path: Path) -> bytes:
    """The content of ``path``. Raises ``FileNotFoundError``; ``TandemError`` where others could touch it."""
    try:
        with open_regular(path) as file:
            _check(path, os.fstat(file.fileno()), folder=False)
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except NotRegular as error:
        raise _unusable(path, "it is not an ordinary file") from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if len(data) > MAX_BYTES:
        raise _unusable(path, f"it is larger than {MAX_BYTES} bytes")
    return data


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` by ``data`` with permissions ``mode``: a crash leaves the old content or the new.

    Raises ``OSError``; the old file then stays.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        write_new(part, data, mode)
        # Path.replace replaces the name itself, never a link's target.
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_new(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create ``path``, which must not exist, and sync it to the disk. Removes a half-written file."""
    # O_EXCL and not O_TRUNC: an existing file would keep its own, perhaps wider, permissions.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)  # whatever the umask removed
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Sync a folder's names to the disk, where the platform can (Windows cannot open a folder)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def user_id() -> int:
    """The user id of this process, as in files' ownership: on Windows it is always 0."""
    user = 0
    if sys.platform != "win32":
        user = os.geteuid()
    return user


def _check(path: Path, found: os.stat_result, *, folder: bool) -> None:
    kind = "folder" if folder else "file"
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(found.st_mode):
        raise _unusable(path, f"it is not an ordinary {kind}")
    if os.name != "posix":
        return  # Windows: a user's profile folder is private by its access list
    if found.st_uid != user_id():
        raise TandemError(
            code="wrong-owner",
            what=f"{path} belongs to user {found.st_uid}, and Tandem runs as user {user_id()}.",
            fix=f"Run Tandem as the user who made it, or: sudo chown -R {user_id()} '{path}'.",
        )
    if found.st_mode & 0o077:
        right = "700" if folder else "600"
        raise TandemError(
            code="wrong-mode",
            what=f"Other users of this computer can reach {path} (mode {stat.S_IMODE(found.st_mode):04o}).",
            fix=f"Close it: chmod {right} '{path}'. If others may have read a key in it, delete the key "
            "and pair your devices again.",
        )


def _unusable(path: Path, why: str) -> TandemError:
    return TandemError(
        code="file-unusable",
        what=f"{path} can't be used: {why}.",
        fix="Put the right file back, or move it away and start Tandem again.",
    )
