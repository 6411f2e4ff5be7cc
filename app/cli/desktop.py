"""``tandem install-desktop`` adds Tandem and its icon to the desktop's menu, or removes them; ``tandem
uninstall`` removes what Tandem installed for this user and, on request, its data."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from pathlib import Path

from app.cli.command_line import argument, home_of, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.system import autostart, desktop_files
from core.home.home import Home
from core.home.lock import HomeLock
from core.vocabulary.environments import DISTRIBUTION
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import is_frozen

PACKAGED = Path("/usr/lib")
_LINUX = sys.platform not in ("win32", "darwin")


@subcommand(
    "put Tandem into this user's desktop menu, with its icon",
    argument("--remove", action="store_true", help="remove it again"),
)
async def install_desktop(arguments: argparse.Namespace, screen: Screen) -> int:
    work = desktop_files.remove if arguments.remove else desktop_files.install
    paths = await asyncio.to_thread(work, desktop_files.data_folder())
    if arguments.remove:
        words = "Tandem is no longer in the menu." if paths else "Tandem was not in the menu."
    else:
        words = f"Tandem is in the menu now: {paths[0]}"
    screen.end({"removed" if arguments.remove else "installed": [str(path) for path in paths]}, words)
    return ExitCode.OK


@subcommand(
    "remove Tandem from this user's desktop",
    argument(
        "--delete-home",
        action="store_true",
        help="also delete Tandem's data for good: its key, paired devices, settings, all runs with "
        "their models, copies of the examples, and projects that others sent",
    ),
    more="The program itself stays; the command that removes it is shown. Your scripts and their outputs "
    "stay, too.",
)
async def uninstall(arguments: argparse.Namespace, screen: Screen) -> int:
    home = home_of(arguments)
    removed = await asyncio.to_thread(_remove, home, delete_home=arguments.delete_home)
    left = str(home.folder) if home.folder.exists() else ""
    program = program_remover()
    if screen.json:
        screen.result({"ok": True, "removed": [str(path) for path in removed], "home": left, "next": program})
        return ExitCode.OK
    for path in removed:
        screen.say(f"Removed: {path}")
    if left:
        screen.say(f"Kept: {left}" + ("" if arguments.delete_home else " (--delete-home deletes it)"))
    screen.say(f"To remove the program: {program}", "bold")
    return ExitCode.OK


def _remove(home: Home, *, delete_home: bool) -> list[Path]:
    removed: list[Path] = []
    if delete_home and home.folder.exists():
        removed += clear(home)
    if _LINUX:
        removed += desktop_files.remove(desktop_files.data_folder())
        autostart.set_start(False)
    return removed


def clear(home: Home) -> list[Path]:
    """Deletes Tandem's files in the folder, and the folder if nothing else is in it.

    Raises ``TandemError`` if the folder is not a Tandem home or a running Tandem holds it.
    """
    if not home.lock.exists():
        raise TandemError(
            code="no-home",
            what=f"{home.folder} is not a Tandem home.",
            fix="Give the right folder: tandem --home DIR uninstall --delete-home.",
        )
    lock = HomeLock.acquire(home.lock)
    try:
        removed = [path for path in home.own() if path.exists() or path.is_symlink()]
        for path in removed:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    except OSError as error:
        raise TandemError(
            code="home-not-deleted",
            what=f"{error.filename or home.folder} could not be deleted ({error.strerror or error}).",
            fix="Make it writable for you, and try again.",
        ) from error
    finally:
        lock.release()
    if not any(home.folder.iterdir()):
        home.folder.rmdir()
    return removed


def program_remover() -> str:
    """The command that removes this program, guessed from its location."""
    program = Path(sys.executable)
    if is_frozen():
        if program.is_relative_to(PACKAGED):
            return f"sudo apt remove {DISTRIBUTION}"
        return f"delete the folder {program.parent}"
    if "pipx" in program.parts:
        return f"pipx uninstall {DISTRIBUTION}"
    if program.parts[-5:-3] == ("uv", "tools"):
        return f"uv tool uninstall {DISTRIBUTION}"
    return f"{program} -m pip uninstall {DISTRIBUTION}"
