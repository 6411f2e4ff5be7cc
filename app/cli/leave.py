"""``tandem leave``: this laptop leaves the run under way, and the others go on."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli.command_line import add_subcommand, node_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.words.device_names import names_of
from core.run import departure, problems
from core.vocabulary.answers import Done
from core.vocabulary.commands import LeaveRun, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.text import listed, plain

MORE = """\
The training here ends after the present step, and the others go on with the result of one machine. On the
laptop that started the run, Tandem goes on coordinating it: leave it open. A laptop that left does not come
back automatically: tandem add NAME brings it back.
"""


def add_leave(parsers: Any) -> None:
    parser = add_subcommand(
        parsers, "leave", "leave the run under way; the others go on", leave, json=True, more=MORE
    )
    parser.add_argument(
        "--or-stop", action="store_true", help="if the others cannot go on, stop the run for all"
    )


async def leave(arguments: argparse.Namespace, screen: Screen) -> int:
    async with node_of(arguments) as follower:
        return await leave_on(follower, screen, or_stop=arguments.or_stop)


async def leave_on(follower: Follower, screen: Screen, *, or_stop: bool = False) -> int:
    state = follower.state
    run, me = state.run, state.me
    if run is None or run.over or me is None:
        raise TandemError.of(problems.no_run())
    others = [device for device in run.staying if device != me.device]
    who = plain(listed(list(names_of(state, others).values())), 200)
    try:
        await follower.submit(LeaveRun(run=run.plan.run), Done)
    except TandemError as error:
        if not or_stop or error.code != departure.CANNOT:
            raise
        await follower.submit(StopRun(), Done)
        did, words = "stop", f"{error.what} The run is being stopped."
    else:
        go_on = "goes" if len(others) == 1 else "go"
        did, words = "leave", f"This laptop leaves the run after the present step; {who} {go_on} on."
    screen.end({"ok": True, "run": run.plan.run, "did": did}, words)
    return ExitCode.OK
