"""Parses the command line. Each subcommand is a function, declared with its summary and its arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from app.cli.completion import Completer
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.connection import connect
from app.follower import Follower
from core.home import home
from core.home.home import Home
from core.vocabulary.text import capitalised
from core.vocabulary.versions import installed, sentence

Runs = Callable[[argparse.Namespace, Screen], Coroutine[Any, Any, int]]
NodeRuns = Callable[[argparse.Namespace, Screen, Follower], Coroutine[Any, Any, int]]
SUBCOMMANDS = {
    "demo": "demo",
    "devices": "devices",
    "pair": "pair",
    "forget": "devices",
    "clear": "upkeep",
    "add": "membership",
    "leave": "membership",
    "agent": "agent",
    "run": "run",
    "resume": "run",
    "sweep": "sweep",
    "member": "member",
    "export": "export",
    "runs": "runs",
    "tensorboard": "tensorboard",
    "tf_config": "tf_config",
    "doctor": "upkeep",
    "environment": "environment",
    "install_desktop": "desktop",
    "uninstall": "desktop",
}
"""The module of each subcommand, which is declared there."""
_ENDINGS = "\n".join(f"  {code.value:>3}  {code.name.lower().replace('_', ' ')}" for code in ExitCode)


class Parser(argparse.ArgumentParser):
    """Reports what it could not parse, then how to get help."""

    def __init__(self, **options: Any) -> None:
        # Whole names only: a script's own --se must never be read as --seed.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{capitalised(message)}.\nSee: {self.prog} --help\n")
        sys.exit(ExitCode.USAGE)


class Parameter(NamedTuple):
    """As for ``add_argument`` of argparse. ``completer``: where a shell finds the values."""

    names: tuple[str, ...]
    options: Mapping[str, Any]
    completer: Completer | None = None

    @property
    def flag(self) -> str:
        return self.names[-1]

    def is_given(self, parsed: argparse.Namespace) -> bool:
        """Whether it differs from its default."""
        name = self.options.get("dest") or self.flag.lstrip("-").replace("-", "_")
        default = False if self.options.get("action") == "store_true" else self.options.get("default")
        return bool(getattr(parsed, name) != default)

    def add_to(self, parser: Any) -> None:
        action = parser.add_argument(*self.names, **self.options)
        if self.completer is not None:
            action.completer = self.completer


class OneOf(NamedTuple):
    """At most one of these arguments; ``required``: exactly one."""

    arguments: tuple[Parameter, ...]
    required: bool = False

    def add_to(self, parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=self.required)
        for each in self.arguments:
            each.add_to(group)


Arguments = tuple[Parameter | OneOf, ...]


class Subcommand(NamedTuple):
    """``json``: it has ``--json``. ``more``: help text below the options. ``defaults``: of what it has no
    argument for."""

    runs: Runs
    summary: str
    arguments: Arguments
    json: bool
    more: str
    defaults: Mapping[str, Any]

    def add_to(self, parsers: Any, name: str) -> None:
        parser: argparse.ArgumentParser = parsers.add_parser(
            name.replace("_", "-"),
            parents=[everywhere()],
            help=self.summary,
            description=f"{capitalised(self.summary)}.",
            epilog=self.more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if self.json:
            parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
        for argument in self.arguments:
            argument.add_to(parser)
        parser.set_defaults(runs=self.runs, error=parser.error, **self.defaults)


DECLARED: dict[str, Subcommand] = {}
"""Subcommands by the names of their functions."""


def argument(*names: str, completer: Completer | None = None, **options: Any) -> Parameter:
    return Parameter(names, options, completer)


def subcommand(
    summary: str, *arguments: Parameter | OneOf, json: bool = True, more: str = "", **defaults: Any
) -> Callable[[Runs], Runs]:
    """Declares a function as the subcommand of its name."""

    def declare(runs: Runs) -> Runs:
        DECLARED[runs.__name__] = Subcommand(runs, summary, arguments, json, more, defaults)
        return runs

    return declare


def node_subcommand(
    summary: str, *arguments: Parameter | OneOf, more: str = "", **defaults: Any
) -> Callable[[NodeRuns], NodeRuns]:
    """Declares a function that also takes this home's node, with its events."""

    def declare(runs: NodeRuns) -> NodeRuns:
        @wraps(runs)
        async def with_node(given: argparse.Namespace, screen: Screen) -> int:
            async with node_of(given) as follower:
                return await runs(given, screen, follower)

        subcommand(summary, *arguments, more=more, **defaults)(with_node)
        return runs

    return declare


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
    parser.add_argument(
        "--version",
        action="version",
        version=sentence(installed()),
        help="show the versions of Tandem, Python, TensorFlow and Keras, and exit",
    )
    parsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for name, module in SUBCOMMANDS.items():
        import_module(f"app.cli.{module}")
        DECLARED[name].add_to(parsers, name)
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
