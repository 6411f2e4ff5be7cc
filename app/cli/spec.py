"""Reads a run's spec from the command line: script, devices, roles, shares. For run and tf-config."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import asdict, replace

from app.cli import completion, run_flags
from app.cli.command_line import Arguments, OneOf, argument
from app.follower import Follower
from app.models import data_folders, openings, run_again
from app.words import device_names
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import GetRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.state import State
from core.vocabulary.text import plain

LINK_S = 10.0
"""Time for paired devices to connect after the node started."""
V = TypeVar("V")
Say = Callable[[str], None]


LAPTOPS = OneOf(
    (
        argument(
            "--with",
            dest="others",
            metavar="NAME,…",
            help="the paired devices that take part (default: those of the earlier run, or every one that is "
            "connected)",
            completer=completion.device_list,
        ),
        argument("--solo", action="store_true", help="train on this laptop alone"),
    )
)
FILES = (
    argument(
        "--open",
        dest="opens",
        action="append",
        default=[],
        metavar=openings.FORM,
        help=f"{openings.HELP}. May be repeated",
        completer=completion.device_values,
    ),
    argument(
        "--data",
        action="append",
        default=[],
        metavar=data_folders.FORM,
        help=f"{data_folders.HELP}. May be repeated",
    ),
)
SCRIPT = argument(
    "script", metavar="SCRIPT", nargs="?", help="a Keras script or notebook, or a folder with exactly one"
)
WHERE: Arguments = (
    LAPTOPS,
    argument(
        "--role",
        dest="roles",
        action="append",
        default=[],
        metavar="NAME=ROLE",
        help="what the device NAME does: chief, worker, ps, evaluator or none; several with commas; NAME may "
        "be me. May be repeated",
        completer=completion.device_roles,
    ),
    argument(
        "--share",
        dest="shares",
        action="append",
        default=[],
        metavar="NAME=ROWS",
        help="fix this device's part of each batch, which otherwise follows the measured speeds: rows of the "
        "global batch (48), of how many (48/64), or percent (75%%); NAME may be me. May be repeated",
        completer=completion.device_values,
    ),
    *FILES,
    *run_flags.flags(),
)
"""Members, roles, shares, files, how gradients travel and how members connect."""
ARGUMENTS: Arguments = (
    OneOf(
        (
            SCRIPT,
            argument(
                "--again",
                metavar="RUN",
                help="instead of SCRIPT: repeat an earlier run (its id or a unique beginning); options given "
                "here replace its own",
                completer=completion.runs,
            ),
        ),
        required=True,
    ),
    *WHERE,
    argument(
        "--seed", type=int, metavar="N", help="random seed, the same on every member (default: a new one)"
    ),
    argument(
        "--strategy",
        choices=("managed", "own"),
        help="managed: Tandem makes fit work across laptops; own: the script brings its strategy "
        "(default: detected in the script)",
    ),
)


async def spec_of(
    arguments: argparse.Namespace, follower: Follower, say: Say, *, link_s: float = LINK_S
) -> RunSpec:
    """Waits for the named devices to connect. Raises ``TandemError`` for an impossible spec."""
    then = await _then(arguments, follower)
    names = [name for name in (arguments.others or "").split(",") if name.strip()]
    if arguments.others is not None and not names:
        raise _bad_value("--with", arguments.others, "NAME,NAME")
    roles = _pairs("--role", arguments.roles, _roles)
    shares = _pairs("--share", arguments.shares, _share)
    wholes = {whole for _, whole in shares.values()}
    if len(wholes) > 1:
        raise TandemError(
            code="bad-option",
            what="The shares count in different units.",
            fix="Give all of them in rows (48), in rows of the same batch (48/64), or in percent (75%).",
        )
    chosen = bool(names) or arguments.solo
    solo = arguments.solo or (then.solo and not chosen)
    if not solo:
        await _wait_linked(follower, names or then.devices, say, link_s)
    state = follower.state
    devices = tuple(
        dict.fromkeys(
            device_names.paired(state, name).device for name in names if not device_names.is_me(state, name)
        )
    )
    fixed = RunSpec(script="") if chosen else then  # roles and shares belong to the laptops of that run
    return replace(
        then,
        **asdict(run_flags.options_of(arguments, then)),
        arguments=arguments.script_arguments or then.arguments,
        devices=devices if chosen else then.devices,
        solo=solo or (bool(names) and not devices),
        roles={device_names.meant(state, name): value for name, value in roles.items()} or fixed.roles,
        shares={device_names.meant(state, name): rows for name, (rows, _) in shares.items()} or fixed.shares,
        shares_total=next(iter(wholes)) if wholes else fixed.shares_total,
        strategy=arguments.strategy or then.strategy,
        seed=then.seed if arguments.seed is None else arguments.seed,
        opens=openings.read(arguments.opens, state, Path.home()) or fixed.opens,
        data=data_folders.read(arguments.data) or then.data,
        resume=RunId(arguments.again) if arguments.resumes else None,
    )


async def _then(arguments: argparse.Namespace, follower: Follower) -> RunSpec:
    """The script alone, or the spec of an earlier run."""
    if arguments.again is None:
        return RunSpec(script=str(Path(arguments.script).absolute()))
    others_said = arguments.others is not None or arguments.solo
    found = await follower.submit(GetRun(run=RunId(arguments.again)), RunDetails)
    return run_again.spec_of(found.entry, follower.state, others_said=others_said, resumes=arguments.resumes)


async def _wait_linked(follower: Follower, names: Sequence[str], say: Say, limit_s: float) -> None:
    """Waits until every device that should take part is connected; a node that ran before us has had that
    time."""

    def linked(state: State) -> bool | None:
        if names:
            wanted = [device_names.find(state, name) for name in names if not device_names.is_me(state, name)]
        else:
            wanted = [device for device in state.devices.values() if device.paired]
        missing = any(device is None or (device.paired and not device.linked) for device in wanted)
        return None if missing else True

    state = follower.state
    if follower.own and linked(state) is None:
        called = (known.shown_name if (known := device_names.find(state, name)) else name for name in names)
        say(f"Looking for {plain(', '.join(called), 200) or 'the paired laptops'} …")
        await follower.until(linked, limit_s)


def _pairs(option: str, given: Sequence[str], value_of: Callable[[str, str], V]) -> dict[str, V]:
    pairs: dict[str, V] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name.strip() or not value.strip():
            raise _bad_value(option, text, "NAME=VALUE")
        if name in pairs:
            raise TandemError(
                code="given-twice",
                what=f"{option} was given twice for {plain(name, 40)}.",
                fix="Give it once; several roles of one device go in one list: NAME=worker,ps.",
            )
        pairs[name] = value_of(option, value)
    return pairs


def _roles(option: str, text: str) -> tuple[Role, ...]:
    try:
        return tuple(Role(word.strip().lower()) for word in text.split(","))
    except ValueError as error:
        raise _bad_value(option, text, " or ".join(Role)) from error


def _share(option: str, text: str) -> tuple[int, int | None]:
    """Rows, and the total if given."""
    rows, slash, whole = text.strip().partition("/")
    if rows.endswith("%") and not slash:
        rows, whole = rows[:-1], "100"
    numbers = [number.strip() for number in (rows, whole or "1")]
    if not all(number.isascii() and number.isdigit() for number in numbers) or (slash and not whole):
        raise _bad_value(
            option, text, "a whole number of rows, rows of a whole batch (48/64) or percent (75%)"
        )
    return int(numbers[0]), int(numbers[1]) if whole else None


def _bad_value(option: str, text: str, wanted: str) -> TandemError:
    return TandemError(
        code="bad-option",
        what=f"{option} does not accept {plain(text, 60)!r}.",
        fix=f"Write it as {option} {wanted}." if "=" in wanted or "," in wanted else f"Give {wanted}.",
    )
