"""``tandem resume RUN``: resume a run that was stopped or failed, from its newest checkpoint."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli import completion, spec
from app.cli import run as run_command
from app.cli.command_line import add_subcommand
from app.cli.screen import Screen

MORE = """\
The run resumes in the middle of its epoch, with the laptops, shares, seed and arguments that it had, unless
you say otherwise. Whoever of them has the newest checkpoint lends it to the others.
"""


def add(parsers: Any) -> None:
    parser = add_subcommand(
        parsers, "resume", "resume a run that was stopped or failed", resume, json=True, more=MORE
    )
    again = parser.add_argument("again", metavar="RUN", help="a run's id or a unique beginning of it")
    completion.completes(again, completion.runs)
    spec.add_where(parser)
    parser.set_defaults(script=None, seed=None, strategy=None, resumes=True)


async def resume(arguments: argparse.Namespace, screen: Screen) -> int:
    return await run_command.run(arguments, screen)
