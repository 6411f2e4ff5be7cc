"""From this Tandem to the one of another environment: it is started, and from then on by menu and login.

Blocks for moments; called when nothing of this one runs any more.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app import autostart, desktop_files
from core.vocabulary.errors import TandemError

_LINUX = sys.platform not in ("win32", "darwin")
_log = logging.getLogger(__name__)


def window_of(tandem: Path) -> Path:
    """What opens the window there; ``tandem``: that environment's command."""
    return tandem.with_name(f"tandem-gui{tandem.suffix}")


def is_in_menu() -> bool:
    """Whether this user's menu has Tandem, by ``install-desktop``."""
    return _LINUX and desktop_files.entry_file(desktop_files.data_folder()).exists()


def go_over(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """``command`` opens the other's window. Its first word becomes what the menu and the login start, where
    they start Tandem at all. Raises ``OSError``."""
    _adopt([command[0]])
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def _adopt(window: list[str]) -> None:
    """A menu that still starts this one is no reason not to start the other."""
    try:
        if is_in_menu():
            desktop_files.write(desktop_files.data_folder(), window)
        if _LINUX and autostart.entry_file().exists():
            autostart.set_start(True, window=window)
    except (OSError, TandemError) as error:
        _log.warning("menu or login still start this Tandem: %s", error)
