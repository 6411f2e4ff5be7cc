"""``tandem agent``: a node without a window. Asks on the terminal, or speaks JSON lines with ``--jsonl``."""

from __future__ import annotations

import argparse
import contextlib

from app.cli import completion
from app.cli.agent_talk import AgentTalk, Allowed, AllowOptions
from app.cli.command_line import argument, home_of, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.cli.pipes import Stdin, Stdout
from app.cli.prompts import Asker
from app.cli.screen import Screen
from app.connection import NodeConnection, start
from app.follower import Follower
from app.models import data_folders
from core.node.conversation import Conversation
from core.vocabulary.commands import ChangeSettings, Quit
from core.vocabulary.errors import TandemError
from core.vocabulary.settings import SettingsChange


@subcommand(
    "run a node without a window",
    argument(
        "--allow",
        action="append",
        default=[],
        metavar="DEVICE",
        help="let this paired device run code here within walls, without asking, while this agent runs. "
        "May be repeated",
        completer=completion.devices,
    ),
    argument(
        "--without-walls",
        action="store_true",
        help="--allow applies even without walls on this system: DEVICE's code can do anything that you can",
    ),
    argument(
        "--data",
        action="append",
        default=[],
        metavar=data_folders.FORM,
        help=f"{data_folders.HELP_HERE}. May be repeated; they are saved, and replace earlier ones",
    ),
    argument("--jsonl", action="store_true", help="commands on stdin, events on stdout"),
    argument("--stay", action="store_true", help="with --jsonl: keep running after the end of stdin"),
    json=False,
    more="""\
With --jsonl each line on stdin is a command and each line on stdout an event, an answer or the first
state; docs/jsonl.md has the vocabulary. The end of stdin ends the agent, unless --stay is given.
""",
)
async def agent(arguments: argparse.Namespace, screen: Screen) -> int:
    with Interrupts() as interrupts:
        folders = data_folders.read(arguments.data)
        allow_options = AllowOptions(arguments.allow, arguments.without_walls)
        async with start(home_of(arguments)) as connection:
            if folders:
                await connection.node.submit(ChangeSettings(change=SettingsChange(data=folders)))
            with Allowed(connection.node, allow_options), contextlib.suppress(OSError):
                await interrupts.unless(_live(arguments, screen, connection, allow_options))
            if interrupts.by_system:
                await connection.node.submit(Quit(leaves=True))
    return ExitCode.OK


async def _live(
    arguments: argparse.Namespace, screen: Screen, connection: NodeConnection, allow_options: AllowOptions
) -> None:
    if arguments.jsonl:
        await Conversation(connection.node, Stdout().write).run(aiter(Stdin()), stay=arguments.stay)
        return
    with Follower(connection) as follower:
        async with Asker(screen, Stdin()) as asker:
            try:
                await AgentTalk(follower, asker, screen, allow_options).run()
            except TandemError as error:
                if error.code != "node-gone":
                    raise
                screen.say("This agent was closed by another command.")
