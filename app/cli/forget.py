"""``tandem forget NAME``: take a paired device's trust away."""

from __future__ import annotations

import argparse
from typing import Any

from app import device_names
from app.cli import completion
from app.cli.command_line import add_subcommand, home_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.connection import connect
from app.follower import Follower
from core.vocabulary.answers import Done
from core.vocabulary.commands import Forget
from core.vocabulary.text import plain


def add(parsers: Any) -> None:
    parser = add_subcommand(
        parsers,
        "forget",
        "unpair a device: it is no longer trusted, and its connection ends",
        forget,
        json=True,
    )
    device = parser.add_argument("device", metavar="NAME", help="as tandem devices shows it")
    completion.completes(device, completion.devices)


async def forget(arguments: argparse.Namespace, screen: Screen) -> int:
    async with connect(home_of(arguments)) as connection:
        with Follower(connection) as follower:
            return await forget_on(follower, screen, arguments.device)


async def forget_on(follower: Follower, screen: Screen, text: str) -> int:
    device = device_names.find(follower.state, text, paired=True)
    if device is None:
        raise device_names.unknown(follower.state, text)
    await follower.submit(Forget(device=device.device), Done)
    if screen.json:
        screen.result({"ok": True, "device": device.device})
    else:
        screen.say(f"{plain(device.shown_name, 40)} is forgotten. To train with it again, pair it again.")
    return ExitCode.OK
