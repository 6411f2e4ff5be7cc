"""Switches from this Tandem to the one of another environment: starts it, now and from the menu and at login.

Blocks for moments; called when nothing of this one runs any more.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app.system import autostart, desktop_files
from core.environment.recipe import variables
from core.vocabulary.errors import Problem, TandemError

_LINUX = sys.platform not in ("win32", "darwin")
_log = logging.getLogger(__name__)


def window_of(tandem: Path) -> Path:
    """The window's program there; ``tandem``: that environment's command."""
    return tandem.with_name(f"tandem-gui{tandem.suffix}")


def is_in_menu() -> bool:
    """Whether this user's menu has Tandem, by ``install-desktop``."""
    return _LINUX and desktop_files.entry_file(desktop_files.data_folder()).exists()


def missing(tandem: Path) -> Problem | None:
    """Why that environment's window can't be opened, checked while this one is still open."""
    for needed in (window_of(tandem), tandem.with_name(f"python{tandem.suffix}")):
        if shutil.which(needed) is None:
            return Problem(
                code="environment-gone",
                what=f"{needed} no longer exists, or cannot be started.",
                fix=f"Delete the folder {tandem.parents[1]}, then press “Have the same here…” again.",
            )
    return None


def go_over(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """``command`` opens the other's window. Once it runs, the menu and login entries, if any, start its
    program. Raises ``OSError``; then both are unchanged."""
    nothing = subprocess.DEVNULL
    started = subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=nothing, env=variables(), start_new_session=True
    )
    _adopt([command[0]])
    return started


def _adopt(window: list[str]) -> None:
    """Failures are only logged: the other one has started anyway."""
    try:
        if is_in_menu():
            desktop_files.write(desktop_files.data_folder(), window)
        if _LINUX and autostart.entry_file().exists():
            autostart.set_start(True, window=window)
    except (OSError, TandemError) as error:
        _log.warning("menu or login still start this Tandem: %s", error)
