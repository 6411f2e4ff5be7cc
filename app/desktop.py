"""``tandem`` without a subcommand: the window. Paints first; everything heavy comes after that."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.system import collector, qt_libraries
from app.system.single_instance import SingleInstance
from app.widgets.icons import application_icon
from app.widgets.navigation import SCREENS
from app.window import Window

if TYPE_CHECKING:
    from app.connection import NodeConnection


def main(argv: Sequence[str] = ()) -> int:
    """``argv``: ``--home DIR`` or ``--home=DIR`` or neither, then optionally a script to open. Returns the
    exit code."""
    if not has_screen(os.environ):
        return _say_no_screen()
    if libraries := qt_libraries.missing(os.environ, sys.platform):
        return _cannot_start(*qt_libraries.words(libraries).strip().split("\n"))
    app = QApplication.instance() or QApplication([Path(sys.argv[0]).name or "tandem"])
    assert isinstance(app, QApplication)
    collector.take_over()
    app.setApplicationName("tandem")
    app.setApplicationDisplayName("Tandem")
    app.setDesktopFileName("tandem")
    app.setQuitOnLastWindowClosed(False)
    folder, script = _folder(argv), _script(argv)
    first = SingleInstance(folder)
    if not first.claim(script):
        return 0
    app.styleHints().colorSchemeChanged.connect(lambda _: theme.paint())
    settings = folder / "settings.json"
    theme.use(theme.remembered(settings))
    window = Window(SCREENS, first_run=is_first_run(settings))
    window.painted.connect(
        lambda: QTimer.singleShot(0, window, lambda: _begin(window, folder, first, script))
    )
    window.show()
    try:
        code = app.exec()
    finally:
        first.release()
    return _go_over(window.next_program) if window.next_program else code


def is_first_run(settings: Path) -> bool:
    """Whether the first steps are still ahead, read without the core or a parser: for the first paint."""
    try:
        return re.search(rb'"first_run_done"\s*:\s*true', settings.read_bytes()[:262_144]) is None
    except OSError:
        return True


def has_screen(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Without a screen Qt crashes the whole process."""
    if platform in ("win32", "darwin"):
        return True
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def _say_no_screen() -> int:
    return _cannot_start(
        "Tandem's window needs a desktop; here neither DISPLAY nor WAYLAND_DISPLAY names one.",
        "Start it on the laptop's own desktop, or train without a window: see tandem --help.",
    )


def _cannot_start(what: str, fix: str) -> int:
    from app.cli.exit_codes import ExitCode

    sys.stderr.write(f"{what}\n{fix}\n")
    return ExitCode.CANNOT_START


def _begin(window: Window, folder: Path, first: SingleInstance, script: str) -> None:
    """After the first paint: only now is the core imported, and its thread started."""
    from app import startup
    from app.long_work import Turns

    startup.load(window, Turns(window), lambda: _conduct(window, folder, first, script))


def _conduct(window: Window, folder: Path, first: SingleInstance, script: str) -> None:
    from app.conductor import Conductor
    from app.system.signals import EndingSignals

    QApplication.setWindowIcon(application_icon((32, 128)))
    first.listen()
    conductor = Conductor(window, lambda: _opens(folder))
    # In a turn of its own: a collection takes as long as the screens do.
    conductor.bridge.changed.connect(lambda *_: QTimer.singleShot(0, conductor, collector.look))
    signals = EndingSignals(conductor)
    signals.came.connect(lambda by_system: conductor.quit(leaves=by_system))
    first.asked_to_front.connect(window.come_forward)
    first.script_given.connect(conductor.open_script)
    if script:
        conductor.open_script(script)
    conductor.begin()


def _go_over(command: Sequence[str]) -> int:
    from app.system.changeover import go_over

    try:
        go_over(command)
    except OSError as error:
        return _cannot_start(
            f"{command[0]} cannot be started ({error.strerror or error}).",
            "Start this Tandem as before, and press “Have the same here…” again.",
        )
    return 0


@asynccontextmanager
async def _opens(folder: Path) -> AsyncIterator[NodeConnection]:
    from app.connection import connect
    from core.home import home as homes

    async with connect(homes.choose(folder)) as connection:
        yield connection


def _script(argv: Sequence[str]) -> str:
    """The script's absolute path: the first window may run in another folder. ``""``: none is given."""
    given = [one for one in list(argv)[-1:] if not one.startswith("--home=") and "--home" not in argv[-2:-1]]
    return str(Path(given[0]).absolute()) if given else ""


def _folder(argv: Sequence[str]) -> Path:
    """The home's folder as ``home.choose`` finds it, which loads too much before the first paint."""
    match list(argv):
        case ["--home", given, *_]:
            folder = given
        case [one, *_] if one.startswith("--home="):
            folder = one.removeprefix("--home=")
        case _:
            folder = os.environ.get("TANDEM_HOME", "")
    if not folder:
        import platformdirs

        folder = platformdirs.user_data_dir("tandem", appauthor=False)
    try:
        return Path(folder).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        return Path(folder)  # the core reports what is wrong with it
