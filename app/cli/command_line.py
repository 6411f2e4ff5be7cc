"""Parses the command line. Each subcommand's module adds its own arguments and names the function to run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, NoReturn

from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.connection import connect
from app.follower import Follower
from core.home import home
from core.home.home import Home
from core.vocabulary.text import capitalised
from core.vocabulary.versions import installed, sentence

Runs = Callable[[argparse.Namespace, Screen], Awaitable[int]]
SUBCOMMANDS = {
    "demo": "demo",
    "devices": "devices",
    "pair": "pair",
    "forget": "devices",
    "clear": "clear",
    "add": "add",
    "leave": "leave",
    "agent": "agent",
    "run": "run",
    "resume": "run",
    "sweep": "sweep",
    "member": "member",
    "export": "export",
    "runs": "runs",
    "tensorboard": "tensorboard",
    "tf_config": "tf_config",
    "doctor": "doctor",
    "environment": "environment",
    "install_desktop": "desktop",
    "uninstall": "desktop",
}
"""Each subcommand's module, whose function ``add_<subcommand>`` adds it to the parser."""
_ENDINGS = "\n".join(f"  {code.value:>3}  {code.name.lower().replace('_', ' ')}" for code in ExitCode)


class Parser(argparse.ArgumentParser):
    """Reports what it could not parse, then how to get help."""

    def __init__(self, **options: Any) -> None:
        # Whole names only: a script's own --se must never be read as --seed.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{capitalised(message)}.\nSee: {self.prog} --help\n")
        sys.exit(ExitCode.USAGE)


def add_subcommand(
    parsers: Any, name: str, summary: str, runs: Runs, *, json: bool = False, more: str = ""
) -> argparse.ArgumentParser:
    """``json``: adds ``--json``. ``more``: help text below the options."""
    parser: argparse.ArgumentParser = parsers.add_parser(
        name,
        parents=[everywhere()],
        help=summary,
        description=f"{capitalised(summary)}.",
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    parser.set_defaults(runs=runs, error=parser.error)
    return parser


def home_of(arguments: argparse.Namespace) -> Home:
    return home.choose(getattr(arguments, "home", None))


@asynccontextmanager
async def node_of(arguments: argparse.Namespace) -> AsyncIterator[Follower]:
    """The node of this command's home, whichever process runs it, with its events."""
    async with connect(home_of(arguments)) as connection:
        with Follower(connection) as follower:
            yield follower


def everywhere() -> argparse.ArgumentParser:
    """Options of every subcommand, before or after its name."""
    parser = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    parser.add_argument(
        "--home",
        metavar="DIR",
        help="where Tandem keeps its key, settings and runs (default: TANDEM_HOME, or your data folder)",
    )
    return parser


def build() -> argparse.ArgumentParser:
    parser = Parser(
        prog="tandem",
        parents=[everywhere()],
        description="Two laptops, one Keras script: find each other, pair, train. Without a subcommand the "
        "window opens.",
        epilog=f"exit codes:\n{_ENDINGS}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=sentence(installed()))
    parsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for name, module in SUBCOMMANDS.items():
        getattr(import_module(f"app.cli.{module}"), f"add_{name}")(parsers)
    return parser


def read(argv: Sequence[str]) -> argparse.Namespace:
    """Everything after a lone ``--`` belongs to the user's script. Ends the process on bad usage."""
    given = list(argv)
    rest: list[str] = []
    if "--" in given:
        at = given.index("--")
        given, rest = given[:at], given[at + 1 :]
    arguments, unknown = build().parse_known_args(given)
    takes_script = "script" in arguments
    if unknown:
        hint = f". The script's own arguments go after --: tandem run SCRIPT -- {' '.join(unknown)}"
        arguments.error(f"not understood: {' '.join(unknown)}{hint if takes_script else ''}")
    if rest and not takes_script:
        arguments.error(f"not understood: -- {' '.join(rest)}")
    arguments.script_arguments = tuple(rest)
    return arguments
