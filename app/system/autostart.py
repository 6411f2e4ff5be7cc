"""Starts Tandem's window from outside: the command, and autostart at login.

Uses XDG autostart on Linux; elsewhere it says what to do by hand.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from core.supervisor import spawn
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import is_frozen

FILE = "tandem.desktop"
RESOURCES = Path(__file__).parents[2] / "resources"


def set_start(wanted: bool, platform: str = sys.platform, *, window: list[str] | None = None) -> None:
    """``window``: the command that opens it, if not this installation's.

    Raises ``TandemError`` if the system has no autostart, or refuses the file.
    """
    if platform in ("win32", "darwin"):
        if wanted:
            raise _by_hand(platform)
        return
    path = entry_file()
    try:
        if wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(entry(window or window_command()), encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise TandemError(
            code="autostart-unwritable",
            what=f"Starting at login can't be changed: {path} ({error.strerror or error}).",
            fix="Make that folder writable for you, then try again.",
        ) from error


def entry_file() -> Path:
    """Exists if Tandem starts at login."""
    config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (config if config.is_absolute() else Path.home() / ".config") / "autostart" / FILE


def _by_hand(platform: str) -> TandemError:
    fix = (
        "Put a shortcut to Tandem into the folder that Win+R, shell:startup opens."
        if platform == "win32"
        else "Add Tandem in System Settings, General, Login Items."
    )
    system = "Windows" if platform == "win32" else "macOS"
    return TandemError(
        code="autostart-not-here", what=f"Tandem can't set itself to start at login on {system} yet.", fix=fix
    )


def window_command() -> list[str]:
    """The frozen program itself, the installed ``tandem-gui``, or this Python with the starter."""
    if is_frozen():
        return spawn.program()
    name = "tandem-gui.exe" if sys.platform == "win32" else "tandem-gui"
    # Not resolved: in a virtual environment the scripts lie beside the symlink, not beside its target.
    script = Path(sys.executable).absolute().with_name(name)
    if script.exists():
        return [str(script)]
    return spawn.program()


def entry(command: list[str]) -> str:
    """The desktop entry, of the menu and of autostart. ``command``: opens the window. Raises ``OSError``."""
    return (RESOURCES / "desktop" / FILE).read_text(encoding="utf-8").replace("@EXEC@", exec_value(command))


def exec_value(command: list[str]) -> str:
    """Quoted for ``Exec=`` of a desktop entry (Desktop Entry Specification, "The Exec key")."""
    return " ".join(_quoted(part) for part in command)


def _quoted(part: str) -> str:
    part = part.replace("%", "%%")
    if part and all(char.isalnum() or char in "-_./=:+,@%" for char in part):
        return part
    inner = "".join(f"\\{char}" if char in '"`$\\' else char for char in part)
    # The value is a string first: its own escapes are undone before the quotes are.
    return '"' + inner.replace("\\", "\\\\") + '"'
