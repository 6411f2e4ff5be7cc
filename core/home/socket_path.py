"""The path of the local socket: a Unix socket's is limited (``sun_path``), and the home's may be longer.
Blocks."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from core.home import private_file
from core.home.home import Home

LONGEST = 100
"""Bytes that every system accepts (Linux 107, macOS 103)."""
_PREFIX = "tandem-"


def choose(home: Home, *, longest: int = LONGEST) -> Path:
    """A path of at most ``longest`` bytes to listen at; removes a crashed node's socket.

    Raises ``OSError``.
    """
    release(home)
    if len(os.fsencode(home.socket)) <= longest:
        return home.socket
    # mkdtemp makes it 0700 and ours, whatever others put into the folder for temporary files.
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=_short_folder(longest))
    path = Path(folder) / "node.sock"
    _record(home).write_text(str(path), encoding="utf-8")
    return path


def find(home: Home) -> Path:
    """Where the node of ``home`` listens, if one runs."""
    recorded = _recorded(home)
    return recorded if recorded is not None else home.socket


def release(home: Home) -> None:
    """Remove the socket and whatever was made for it."""
    home.socket.unlink(missing_ok=True)
    recorded = _recorded(home)
    if recorded is not None:
        shutil.rmtree(recorded.parent, ignore_errors=True)
    _record(home).unlink(missing_ok=True)


def _record(home: Home) -> Path:
    return home.folder / "node.sock.path"


def _recorded(home: Home) -> Path | None:
    try:
        path = Path(_record(home).read_text(encoding="utf-8").strip())
        ours = path.parent.lstat().st_uid == private_file.user_id() and not path.parent.is_symlink()
    except (OSError, ValueError):
        return None
    # Only paths that ``choose`` makes: the folder is deleted with everything in it.
    return path if ours and path.name == "node.sock" and path.parent.name.startswith(_PREFIX) else None


def _short_folder(longest: int) -> str | None:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = runtime and len(os.fsencode(runtime)) <= longest - 40 and os.access(runtime, os.W_OK)
    if usable:
        return runtime
    temporary = tempfile.gettempdir()
    return temporary if len(os.fsencode(temporary)) <= longest - 40 else "/tmp"
