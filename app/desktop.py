"""``tandem`` without a subcommand: the window. Paints first; everything heavy comes after that."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.cli.exit_codes import ExitCode
from app.screens import SCREENS
from app.single_instance import SingleInstance
from app.widgets.icons import application_icon
from app.window import Window
from core import home as homes
from core.errors import TandemError
from core.home import Home


def main(argv: Sequence[str] = ()) -> int:
    """``argv``: nothing, ``--home DIR`` or ``--home=DIR``. The process's exit code."""
    try:
        home = homes.choose(_given_home(argv))
    except TandemError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.CANNOT_START
    app = QApplication.instance() or QApplication([Path(sys.argv[0]).name or "tandem"])
    assert isinstance(app, QApplication)
    app.setApplicationName("tandem")
    app.setApplicationDisplayName("Tandem")
    app.setDesktopFileName("tandem")
    app.setQuitOnLastWindowClosed(False)
    first = SingleInstance(home.folder)
    if not first.claim():
        return 0
    app.styleHints().colorSchemeChanged.connect(lambda _: theme.paint())
    theme.use(theme.remembered(home.settings))
    app.setWindowIcon(application_icon((32, 128)))
    window = Window(tuple(screen.entry for screen in SCREENS))
    window.painted.connect(lambda: QTimer.singleShot(0, window, lambda: _begin(window, home, first)))
    window.show()
    try:
        return app.exec()
    finally:
        first.release()


def _begin(window: Window, home: Home, first: SingleInstance) -> None:
    """After the first paint: only now is the core imported, and its thread started."""
    from app.conductor import Conductor

    conductor = Conductor(window, home)
    first.asked_to_front.connect(window.come_forward)
    conductor.begin()


def _given_home(argv: Sequence[str]) -> str | None:
    match list(argv):
        case ["--home", folder]:
            return folder
        case [one] if one.startswith("--home="):
            return one.removeprefix("--home=")
    return None
