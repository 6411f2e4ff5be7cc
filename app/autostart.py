"""Starting Tandem when the user logs in: XDG autostart on Linux; elsewhere it says what to do by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app.launch_command import exec_value, window_command
from core.vocabulary.errors import TandemError

FILE = "tandem.desktop"


def set_start(wanted: bool, platform: str = sys.platform, *, window: list[str] | None = None) -> None:
    """``window``: what opens it, if not this installation's.

    Raises ``TandemError`` where the system has no such thing, or does not take the file.
    """
    if platform in ("win32", "darwin"):
        if wanted:
            raise _by_hand(platform)
        return
    path = entry_file()
    try:
        if wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_entry(window or window_command()), encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise TandemError(
            code="autostart-unwritable",
            what=f"Starting at login can't be changed: {path} ({error.strerror or error}).",
            fix="Make that folder writable for you, then try again.",
        ) from error


def entry_file() -> Path:
    """There is one where Tandem starts at login."""
    config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (config if config.is_absolute() else Path.home() / ".config") / "autostart" / FILE


def _entry(window: list[str]) -> str:
    return (
        "[Desktop Entry]\n"
        "Type=Application\n"
        "Name=Tandem\n"
        "Comment=Train a Keras script on two laptops at once\n"
        f"Exec={exec_value(window)}\n"
        "Icon=tandem\n"
        "Terminal=false\n"
        "X-GNOME-Autostart-enabled=true\n"
    )


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
