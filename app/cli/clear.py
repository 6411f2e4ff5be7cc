"""``tandem clear``: removes what other laptops sent and their runs left on this one."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli.command_line import add_subcommand, node_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from core.vocabulary import units
from core.vocabulary.answers import Cleared
from core.vocabulary.commands import Clear


def add_clear(parsers: Any) -> None:
    add_subcommand(
        parsers,
        "clear",
        "remove what other laptops sent and their runs left on this laptop",
        clear,
        json=True,
        more="The record of each run stays. Your own runs lose only outputs-left: outputs that could not "
        "be brought back.",
    )


async def clear(arguments: argparse.Namespace, screen: Screen) -> int:
    async with node_of(arguments) as follower:
        return await clear_on(follower, screen)


async def clear_on(follower: Follower, screen: Screen) -> int:
    cleared = await follower.submit(Clear(), Cleared)
    freed = cleared.freed_bytes
    screen.end({"ok": True, "freed_bytes": freed}, f"Freed {units.size(freed)}.")
    return ExitCode.OK
