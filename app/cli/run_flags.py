"""The flags of a run's options (``RunOptions``), the same for each subcommand that has them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, get_args

from msgspec import ValidationError, convert
from msgspec.structs import replace

from app.cli.command_line import Parameter, argument
from core.vocabulary.errors import TandemError
from core.vocabulary.options import (
    ASK_AFTER_S,
    AWAY_S,
    GO_ON_S,
    LEAST_STEPS,
    MOST_STEPS,
    RunOptions,
    Sync,
    Wire,
)


def _minutes(text: str) -> float:
    """Returns seconds."""
    minutes = float(text)
    if minutes < 0:
        raise argparse.ArgumentTypeError(f"{text} minutes is not a valid wait: give 0 or more")
    return 60 * minutes


_minutes.__name__ = "minutes"  # argparse's name for the type in error messages


def _sync(text: str) -> Sync:
    try:
        return convert(text, Sync)
    except ValidationError:
        raise argparse.ArgumentTypeError(
            f"write exact, rare, or rare=N with N from {LEAST_STEPS} to {MOST_STEPS}, not {text!r}"
        ) from None


FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "wire": (
        "--wire",
        {
            "choices": get_args(Wire),
            "help": "number format of gradients between members (default: f32, the only exact one)",
        },
    ),
    "sync": (
        "--sync",
        {
            "type": _sync,
            "metavar": "{exact,rare[=STEPS]}",
            "help": "rare: on a slow network, exchange only every so many steps, "
            f"{LEAST_STEPS} to {MOST_STEPS} (without a number: chosen by the network's speed). That is not "
            "exact (default: exact, in every step)",
        },
    ),
    "downloads": (
        "--downloads",
        {
            "action": argparse.BooleanOptionalAction,
            "help": "let a sealed script download; with --no-downloads it reaches only the other members "
            "(default: it may download)",
        },
    ),
    "away_s": (
        "--wait-for-away",
        {
            "type": _minutes,
            "metavar": "MINUTES",
            "help": "how long the run waits for a member that has been silent for 10 seconds: asleep or "
            f"offline (default: {AWAY_S / 60:.0f}; {GO_ON_S:.0f} if the others can go on without it)",
        },
    ),
    "ask_after_s": (
        "--ask-after",
        {
            "type": _minutes,
            "metavar": "MINUTES",
            "help": "minutes without progress before you are asked whether to keep waiting; 0: never "
            f"(default: {ASK_AFTER_S / 60:.0f})",
        },
    ),
    "accept_differences": (
        "--accept-differences",
        {
            "action": argparse.BooleanOptionalAction,
            "help": "exit with 0 even if the run reports that its result may differ from one machine's",
        },
    ),
}
"""Flags by field of ``RunOptions``."""
OF_A_MEMBER = ("wire", "sync", "away_s", "accept_differences")
"""The options of a member of a cluster's job: it asks nobody, and its network is its own."""


def flags(names: Sequence[str] = tuple(FLAGS)) -> tuple[Parameter, ...]:
    return tuple(
        argument(flag, dest=name, default=None, **options)
        for name in names
        for flag, options in [FLAGS[name]]
    )


def options_of(arguments: argparse.Namespace, then: RunOptions) -> RunOptions:
    """Given options replace the run's."""
    given = {name: getattr(arguments, name, None) for name in FLAGS}
    given["go_on_s"] = given["away_s"]
    return replace(then.options, **{name: value for name, value in given.items() if value is not None})


def shares_by_rank(text: str) -> tuple[int, ...]:
    """``48,16``. Raises ``TandemError``."""
    try:
        return tuple(int(rows) for rows in text.split(","))
    except ValueError as error:
        raise TandemError(
            code="bad-option",
            what=f"--share does not accept {text!r}.",
            fix="Write a number for each member, by rank: --share 48,16.",
        ) from error
