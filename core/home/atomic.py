"""Writes a file so that a crash leaves the old content or the new, never half of it. Blocks: use a thread."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` by ``data`` with permissions ``mode``. Raises ``OSError``; the old file then stays."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        write_new(part, data, mode)
        # Not Path.replace of a link's target: the name itself is replaced, whatever it pointed to.
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_new(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create ``path``, which must not exist, and bring it to the disk. A half-written file is taken away."""
    # O_EXCL and not O_TRUNC: an existing file would keep its own, perhaps wider, permissions.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)  # whatever the umask took away
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk, where the platform can (Windows cannot open a folder)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
