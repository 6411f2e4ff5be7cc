"""``tandem add NAME,…`` brings paired laptops into the run under way; ``tandem leave`` takes this one out."""

from __future__ import annotations

import argparse

from app.cli import completion
from app.cli.command_line import argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.words import device_names
from core.run import departure, problems
from core.vocabulary.answers import Done
from core.vocabulary.commands import AddLaptops, LeaveRun, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.state import Run, State
from core.vocabulary.text import listed, plain


@node_subcommand(
    "add paired laptops to the run under way",
    argument("names", metavar="NAME,…", help="one or more laptops", completer=completion.device_list),
    more="""\
Each laptop's user is asked first, and the laptop gets the files while the run goes on. Then the run stops at
the end of a step and goes on from there with all laptops. A laptop that was lost comes back automatically.
""",
)
async def add(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    run = _under_way(follower.state)
    called = [name for name in arguments.names.split(",") if name.strip()]
    devices = [device_names.paired(follower.state, name) for name in called]
    known = tuple(device.device for device in devices)
    await follower.submit(AddLaptops(run=run.plan.run, devices=known), Done)
    who = plain(listed([device.shown_name for device in devices]), 200)
    screen.end(
        {"ok": True, "run": run.plan.run, "devices": known},
        f"Asking {who}. Once the files are there, the run stops at the end of a step and goes on with {who} "
        "as well.",
    )
    return ExitCode.OK


@node_subcommand(
    "leave the run under way; the others go on",
    argument("--or-stop", action="store_true", help="if the others cannot go on, stop the run for all"),
    more="""\
The training here ends after the present step, and the others go on with the result of one machine. On the
laptop that started the run, Tandem goes on coordinating it: leave it open. A laptop that left does not come
back automatically: tandem add NAME brings it back.
""",
)
async def leave(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    state = follower.state
    run, me = _under_way(state), state.me
    others = [device for device in run.staying if me is None or device != me.device]
    who = plain(listed(list(device_names.names_of(state, others).values())), 200)
    try:
        await follower.submit(LeaveRun(run=run.plan.run), Done)
    except TandemError as error:
        if not arguments.or_stop or error.code != departure.CANNOT:
            raise
        await follower.submit(StopRun(), Done)
        did, words = "stop", f"{error.what} The run is being stopped."
    else:
        go_on = "goes" if len(others) == 1 else "go"
        did, words = "leave", f"This laptop leaves the run after the present step; {who} {go_on} on."
    screen.end({"ok": True, "run": run.plan.run, "did": did}, words)
    return ExitCode.OK


def _under_way(state: State) -> Run:
    """Raises ``TandemError`` without one."""
    if state.run is None or state.run.over:
        raise TandemError.of(problems.no_run())
    return state.run
