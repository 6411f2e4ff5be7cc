"""``tandem`` without a subcommand: the window. Paints first; everything heavy comes after that."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLibraryInfo, QTimer
from PySide6.QtWidgets import QApplication

from app import collector, theme
from app.screens import SCREENS
from app.single_instance import SingleInstance
from app.widgets.icons import application_icon
from app.window import Window

if TYPE_CHECKING:
    from app.connection import Connection


def main(argv: Sequence[str] = ()) -> int:
    """``argv``: ``--home DIR`` or ``--home=DIR`` or neither, then a script to open or none. The exit code."""
    if not has_screen(os.environ):
        return _say_no_screen()
    if library := missing_library(os.environ):
        return _say_missing(library)
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
    window = Window(tuple(screen.entry for screen in SCREENS), first_run=is_first_run(settings))
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
    """Whether the first steps are still to come, read without the core or a parser: for the first paint."""
    try:
        return re.search(rb'"first_run_done"\s*:\s*true', settings.read_bytes()[:262_144]) is None
    except OSError:
        return True


def has_screen(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Qt ends the whole process, by a crash, where it finds none."""
    if platform in ("win32", "darwin"):
        return True
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def missing_library(
    environment: Mapping[str, str], platform: str = sys.platform, load: Callable[[str], object] | None = None
) -> str:
    """The library without which Qt would end the whole process where X11 is the way to a screen; else ``""``.

    Debian and Ubuntu do not install libxcb-cursor by themselves. ``load`` raises ``OSError`` as dlopen fails.
    """
    chosen = environment.get("QT_QPA_PLATFORM", "")
    by_x11 = chosen.startswith("xcb") if chosen else not environment.get("WAYLAND_DISPLAY")
    if platform != "linux" or not by_x11:
        return ""
    from ctypes import CDLL

    plugins = QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)
    try:
        (load or CDLL)(f"{plugins}/platforms/libqxcb.so")  # Qt loads it next, from the same place
    except OSError as error:
        found = re.match(r"(lib[\w.+-]+): cannot open", str(error))
        return found[1] if found else ""
    return ""


def _say_no_screen() -> int:
    return _cannot_start(
        "Tandem's window needs a desktop; here neither DISPLAY nor WAYLAND_DISPLAY names one.",
        "Start it on the laptop's own desktop, or train without a window: see tandem --help.",
    )


def _say_missing(library: str) -> int:
    # As Debian names its packages of libraries: by name and version, with a dash after a digit.
    name, _, version = library.partition(".so.")
    package = f"{name}{'-' if name[-1].isdigit() else ''}{version}"
    return _cannot_start(
        f"Tandem's window needs the library {library}, which this system lacks.",
        f"Install it (Debian, Ubuntu: sudo apt install {package}), or train without a window: see "
        "tandem --help.",
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
    from app.signals import EndingSignals

    QApplication.setWindowIcon(application_icon((32, 128)))
    first.listen()
    conductor = Conductor(window, lambda: _opens(folder))
    conductor.bridge.changed.connect(collector.look)
    signals = EndingSignals(conductor)
    signals.came.connect(conductor.quit)
    first.asked_to_front.connect(window.come_forward)
    first.script_given.connect(conductor.open_script)
    if script:
        conductor.open_script(script)
    conductor.begin()


def _go_over(command: Sequence[str]) -> int:
    from app.changeover import go_over

    try:
        go_over(command)
    except OSError as error:
        return _cannot_start(
            f"{command[0]} cannot be started ({error.strerror or error}).",
            "Start this Tandem as before, and press “Have the same here…” again.",
        )
    return 0


@asynccontextmanager
async def _opens(folder: Path) -> AsyncIterator[Connection]:
    from app.connection import connect
    from core.home import home as homes

    async with connect(homes.choose(folder)) as connection:
        yield connection


def _script(argv: Sequence[str]) -> str:
    """Its whole path: the first window may have been started elsewhere. ``""``: none is given."""
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
        return Path(folder)  # the core says what is wrong with it
