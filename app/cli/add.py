"""``tandem add NAME,…``: adds paired laptops to the current run, if it was started here."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli import completion
from app.cli.command_line import add_subcommand, node_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.words import device_names
from core.run import problems
from core.vocabulary.answers import Done
from core.vocabulary.commands import AddLaptops
from core.vocabulary.errors import TandemError
from core.vocabulary.text import listed, plain

MORE = """\
The laptop is asked first, and gets the files, while the run goes on. Then the run stops at the end of a step
and goes on from there with all laptops. A laptop that was lost comes back automatically.
"""


def add_add(parsers: Any) -> None:
    parser = add_subcommand(
        parsers, "add", "add paired laptops to the run under way", add, json=True, more=MORE
    )
    names = parser.add_argument("names", metavar="NAME,…", help="one or more laptops")
    completion.completes(names, completion.device_list)


async def add(arguments: argparse.Namespace, screen: Screen) -> int:
    async with node_of(arguments) as follower:
        return await add_on(follower, screen, arguments.names)


async def add_on(follower: Follower, screen: Screen, names: str) -> int:
    run = follower.state.run
    if run is None or run.over:
        raise TandemError.of(problems.no_run())
    called = [name for name in names.split(",") if name.strip()]
    devices = [device_names.paired(follower.state, name) for name in called]
    known = tuple(device.device for device in devices)
    await follower.submit(AddLaptops(run=run.plan.run, devices=known), Done)
    who = plain(listed([device.shown_name for device in devices]), 200)
    screen.end(
        {"ok": True, "run": run.plan.run, "devices": known},
        f"Asking {who}. Once everything is there, the run stops at the end of a step and goes on with {who} "
        "as well.",
    )
    return ExitCode.OK
