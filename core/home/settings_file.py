"""``settings.json``: read at start, written whenever a setting changes. Blocks: use a thread."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from core.home.private_file import write_atomically
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.settings import Settings

MAX_BYTES = 256 * 1024


def read(path: Path) -> tuple[Settings, Problem | None]:
    """The settings; or the defaults and the file's problem, with the unreadable file renamed."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError("it is too large")
        settings = msgspec.json.decode(data, type=Settings)
        check(settings)
    except FileNotFoundError:
        return Settings(), None
    except (OSError, ValueError, TandemError) as error:
        why = error.what if isinstance(error, TandemError) else str(error)
        return Settings(), Problem(
            code="settings-corrupt",
            what=f"The settings in {path} can't be read; the defaults are used.",
            fix=_set_aside(path) or "Choose your settings again; Tandem then saves them in a new file.",
            detail=why,
        )
    return settings, None


def write(path: Path, settings: Settings) -> None:
    """Raises ``TandemError`` if the disk fails; the old file then stays."""
    try:
        write_atomically(path, msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n")
    except OSError as error:
        raise TandemError(
            code="settings-unwritable",
            what=f"The settings can't be written to {path} ({error.strerror or error}).",
            fix="Free some space or make the folder writable, then change the setting again.",
        ) from error


def check(settings: Settings) -> None:
    """Raises ``TandemError`` for an invalid value."""
    port = settings.port
    if not (port == 0 or 1024 <= port <= 65535):
        raise TandemError(
            code="bad-port",
            what=f"{port} can't be Tandem's port.",
            fix="Choose one from 1024 to 65535, best outside 32768 to 60999, or 0 for any free one.",
        )
    name = settings.name
    if len(name.encode("utf-8", "replace")) > 63 or not name.isprintable() or name != name.strip():
        raise TandemError(
            code="bad-name",
            what=f"{name[:80]!r} can't be this laptop's name.",
            fix="Use up to 63 bytes of ordinary characters, without spaces at the ends.",
        )


def _set_aside(path: Path) -> str:
    """Rename the unreadable file, which the next change would overwrite. Returns a sentence for the user;
    ``""``: it failed."""
    kept = path.with_name(f"{path.stem}-corrupt-{int(time.time())}{path.suffix}")
    try:
        path.rename(kept)
    except OSError:
        return ""
    return f"The old file is kept as {kept.name}; choose your settings again."
