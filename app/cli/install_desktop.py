"""``tandem install-desktop``: the desktop's menu gets Tandem with its icon, or loses it again."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from app import desktop_files
from app.cli.command_line import add_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen


def add_install_desktop(parsers: Any) -> None:
    parser = add_subcommand(
        parsers,
        "install-desktop",
        "put Tandem into this user's desktop menu, with its icon",
        install_desktop,
        json=True,
    )
    parser.add_argument("--remove", action="store_true", help="remove it again")


async def install_desktop(arguments: argparse.Namespace, screen: Screen) -> int:
    work = desktop_files.remove if arguments.remove else desktop_files.install
    paths = await asyncio.to_thread(work, desktop_files.data_folder())
    if screen.json:
        screen.result({"removed" if arguments.remove else "installed": [str(path) for path in paths]})
    elif arguments.remove:
        screen.say("Tandem is no longer in the menu." if paths else "Tandem was not in the menu.")
    else:
        screen.say(f"Tandem is in the menu now: {paths[0]}")
    return ExitCode.OK
