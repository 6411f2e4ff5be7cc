"""``tandem demo``: two or three nodes on this machine find each other, pair and train the digits example."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.command_line import argument, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts, unless
from app.cli.screen import Screen


def _epochs(text: str) -> int:
    epochs = int(text)
    if not 1 <= epochs <= 1000:
        raise argparse.ArgumentTypeError("from 1 to 1000")
    return epochs


@subcommand(
    "see it work: several nodes on this machine train one script",
    argument("--nodes", type=int, choices=(2, 3), default=2, help="number of nodes (default: %(default)s)"),
    argument(
        "--epochs", type=_epochs, default=8, metavar="N", help="number of epochs (default: %(default)s)"
    ),
    argument("--out", type=Path, metavar="DIR", help="keep the model in this folder"),
    argument("--keep", action="store_true", help="do not remove the nodes' homes"),
    more="""\
The nodes have homes of their own, which are removed at the end. The model is kept as digits.keras in
tandem-demo in your data folder, or in DIR with --out DIR.
The exit code is 0 only if validation accuracy is 0.95 or more and all members have the same weights.
""",
)
async def demo(arguments: argparse.Namespace, screen: Screen) -> int:
    from app.demo import report, story

    telling = story.tell(
        arguments.nodes,
        arguments.epochs,
        screen.say,
        keep=arguments.keep,
        out=arguments.out,
    )
    with Interrupts() as interrupts:
        told = await unless(_leave(interrupts, screen), telling)
    if told is None:
        return ExitCode.INTERRUPTED
    if screen.json:
        screen.result(told)
    else:
        for line in report.lines(told):
            screen.say(line)
    if told.problem is not None and not screen.json:
        screen.problem(told.problem)
    elif told.ok and not screen.json:
        screen.say("Everything works as promised.", "bold green")
    return ExitCode.OK if told.ok else ExitCode.FAILED


async def _leave(interrupts: Interrupts, screen: Screen) -> None:
    await interrupts.wait_next()
    screen.say("Interrupted: ending the demo's nodes.")
