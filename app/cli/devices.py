"""``tandem devices``: lists this laptop and the visible or paired ones; ``tandem forget`` unpairs one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from app.cli import completion
from app.cli.command_line import argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.words import device_names
from app.words.device_words import hardware_words, state_words
from core.vocabulary.answers import Done
from core.vocabulary.commands import Forget
from core.vocabulary.ids import short
from core.vocabulary.state import State
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from rich.table import Table

LOOK_S = 3.0


@node_subcommand(
    "show this laptop and all visible or paired ones",
    argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help=f"how long to look for others (default: {LOOK_S:g}, or not at all if Tandem is already open)",
    ),
)
async def devices(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    wait_s = arguments.wait if arguments.wait is not None else LOOK_S * follower.own
    await follower.until(lambda state: None, max(0.0, min(wait_s, 3600.0)))
    state = follower.state
    if screen.json:
        screen.result({"ok": True, "me": state.me, "devices": list(state.devices.values())})
    else:
        screen.show(_table(state))
        if not state.devices:
            screen.say(
                "No other laptop is visible or paired. Start Tandem on the other one, on the same network."
            )
    return ExitCode.OK


def _table(state: State) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("name", "id", "state", "address", "hardware", ""):
        table.add_column(column, overflow="fold", no_wrap=column in ("id", "address"))
    if state.me is not None:
        me = state.me
        where = me.addresses[0] if me.addresses else ""
        hardware = plain(hardware_words(me.hardware), 80)
        table.add_row(plain(me.name, 63), short(me.device), "This laptop", where, hardware, "")
    order = sorted(
        state.devices.values(), key=lambda device: (not device.paired, device.shown_name.casefold())
    )
    for device in order:
        table.add_row(
            plain(device.shown_name, 63),
            short(device.device),
            state_words(device)[0],
            plain(device.addresses[0] if device.addresses else "", 60),
            plain(hardware_words(device.hardware), 80),
            plain(str(device.problem), 200) if device.problem else "",
        )
    return table


@node_subcommand(
    "unpair a device: it is no longer trusted, and its connection ends",
    argument("device", metavar="NAME", help="as tandem devices shows it", completer=completion.devices),
)
async def forget(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    device = device_names.find(follower.state, arguments.device, paired=True)
    if device is None:
        raise device_names.unknown(follower.state, arguments.device)
    await follower.submit(Forget(device=device.device), Done)
    words = f"{plain(device.shown_name, 40)} is forgotten. To train with it again, pair it again."
    screen.end({"ok": True, "device": device.device}, words)
    return ExitCode.OK
