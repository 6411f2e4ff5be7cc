"""Reads what a run should be from the command line: script, devices, roles, shares. For run and tf-config."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from app import device_names, run_again
from app.cli import completion
from app.follower import Follower
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import GetRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.plan import (
    ASK_AFTER_S,
    AWAY_S,
    DEFAULT_EXCHANGE,
    Exchange,
    Role,
    RunSpec,
    StrategyKind,
    Wire,
)
from core.vocabulary.state import Device, State
from core.vocabulary.text import plain

LINK_S = 10.0
"""How long paired devices get to connect after the node started."""
V = TypeVar("V")
Say = Callable[[str], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(resumes=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "script", metavar="SCRIPT", nargs="?", help="a Keras script or notebook, or a folder with exactly one"
    )
    again = what.add_argument(
        "--again",
        metavar="RUN",
        help="instead of SCRIPT: repeat an earlier run (its id or a unique beginning of it); options given "
        "here replace those that it had",
    )
    completion.completes(again, completion.runs)
    add_where(parser)
    parser.add_argument(
        "--seed", type=int, metavar="N", help="random seed, the same on every member (default: a new one)"
    )
    parser.add_argument(
        "--strategy",
        choices=("managed", "own"),
        help="managed: Tandem makes fit work across laptops; own: the script brings its strategy "
        "(default: found by reading the script)",
    )


def add_where(parser: argparse.ArgumentParser) -> None:
    """Who takes part, as what, with how much, and how gradients travel, and how members meet."""
    among = parser.add_mutually_exclusive_group()
    others = among.add_argument(
        "--with",
        dest="others",
        metavar="NAME,…",
        help="the paired devices that take part (default: those of the earlier run, or every one that is "
        "connected)",
    )
    completion.completes(others, completion.device_list)
    among.add_argument("--solo", action="store_true", help="train on this laptop alone")
    role = parser.add_argument(
        "--role",
        dest="roles",
        action="append",
        default=[],
        metavar="NAME=ROLE",
        help="chief, worker, ps, evaluator or none; several with commas; NAME may be me. May be repeated",
    )
    completion.completes(role, completion.device_roles)
    share = parser.add_argument(
        "--share",
        dest="shares",
        action="append",
        default=[],
        metavar="NAME=ROWS",
        help="fix this device's part of each batch, which otherwise follows the measured speeds: rows of the "
        "global batch (48), of how many (48/64), or percent (75%%); NAME may be me. May be repeated",
    )
    completion.completes(share, completion.device_values)
    parser.add_argument(
        "--wire",
        choices=("f32", "bf16", "fp16", "auto"),
        help="number format of gradients between laptops (default: f32, which is exact)",
    )
    parser.add_argument(
        "--exchange",
        choices=get_args(Exchange),
        help="how the trainers meet, but for some strategies of a script's own: over TLS with keys for this "
        "run alone, or by TensorFlow's own collectives, which everybody in the network can reach and which "
        "end a run when a laptop sleeps, a cable is pulled or a step's bytes take 10 s; docs/exactness.md "
        f"lists what they refuse (default: {DEFAULT_EXCHANGE})",
    )
    parser.add_argument(
        "--downloads",
        action=argparse.BooleanOptionalAction,
        help="whether a script whose trainers are sealed may download; with --no- it reaches nothing but the "
        "other members (default: it may)",
    )
    parser.add_argument(
        "--open-port",
        action="store_true",
        help="accept for this run that TensorFlow's port is open to everybody in the network, where a "
        "script's own strategy needs it and a laptop cannot seal it; every other user is asked as well",
    )
    parser.add_argument(
        "--wait-for-away",
        type=float,
        metavar="MINUTES",
        help="how long the run waits for a laptop from which nothing comes any more, as it sleeps or has no "
        f"network (default: {AWAY_S / 60:.0f}; over TensorFlow's collectives a run waits for none)",
    )
    parser.add_argument(
        "--ask-after",
        type=float,
        metavar="MINUTES",
        help="so long without any progress, you are asked whether to keep waiting; 0: never "
        f"(default: {ASK_AFTER_S / 60:.0f})",
    )
    parser.add_argument(
        "--accept-differences",
        action=argparse.BooleanOptionalAction,
        help="a run that tells why its result may differ from one machine's ends with 0 all the same; with "
        "--no- what was accepted for this script in the window is withdrawn",
    )


async def spec_of(
    arguments: argparse.Namespace, follower: Follower, say: Say, *, link_s: float = LINK_S
) -> RunSpec:
    """Waits for the named devices to connect. Raises ``TandemError`` for what can't be."""
    then = await _then(arguments, follower)
    strategy: StrategyKind | None = arguments.strategy or then.strategy
    wire: Wire = arguments.wire or then.wire
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
        dict.fromkeys(_paired(state, name).device for name in names if not device_names.is_me(state, name))
    )
    fixed = RunSpec(script="") if chosen else then  # roles and shares belong to the laptops of that run
    return RunSpec(
        script=then.script,
        arguments=arguments.script_arguments or then.arguments,
        devices=devices if chosen else then.devices,
        solo=solo or (bool(names) and not devices),
        roles={_device(state, name): value for name, value in roles.items()} or fixed.roles,
        shares={_device(state, name): rows for name, (rows, _) in shares.items()} or fixed.shares,
        shares_total=next(iter(wholes)) if wholes else fixed.shares_total,
        strategy=strategy,
        seed=then.seed if arguments.seed is None else arguments.seed,
        wire=wire,
        exchange=arguments.exchange or then.exchange,
        away_s=then.away_s if arguments.wait_for_away is None else 60 * arguments.wait_for_away,
        ask_after_s=then.ask_after_s if arguments.ask_after is None else 60 * arguments.ask_after,
        downloads=then.downloads if arguments.downloads is None else arguments.downloads,
        open_port=arguments.open_port,
        accept_differences=then.accept_differences
        if arguments.accept_differences is None
        else arguments.accept_differences,
        resume=RunId(arguments.again) if arguments.resumes else None,
    )


async def _then(arguments: argparse.Namespace, follower: Follower) -> RunSpec:
    """The script alone, or what an earlier run was asked for."""
    if arguments.again is None:
        return RunSpec(script=str(Path(arguments.script).absolute()))
    others_said = arguments.others is not None or arguments.solo
    found = await follower.submit(GetRun(run=RunId(arguments.again)), RunDetails)
    return run_again.spec_of(found.entry, follower.state, others_said=others_said)


async def _wait_linked(follower: Follower, names: Sequence[str], say: Say, limit_s: float) -> None:
    """Until every device that should take part is connected; a node that ran before us has had its time."""

    def linked(state: State) -> bool | None:
        if names:
            wanted = [device_names.find(state, name) for name in names if not device_names.is_me(state, name)]
        else:
            wanted = [device for device in state.devices.values() if device.paired]
        return True if all(device is not None and _can_wait_no_more(device) for device in wanted) else None

    state = follower.state
    if follower.own and linked(state) is None:
        called = (known.shown_name if (known := device_names.find(state, name)) else name for name in names)
        say(f"Looking for {plain(', '.join(called), 200) or 'the paired laptops'} …")
        await follower.until(linked, limit_s)


def _can_wait_no_more(device: Device) -> bool:
    return device.linked or not device.paired


def _paired(state: State, text: str) -> Device:
    device = device_names.find(state, text)
    if device is None:
        raise device_names.unknown(state, text)
    if not device.paired:
        name = plain(device.shown_name, 40)
        raise TandemError(
            code="not-paired",
            what=f"{name} is not paired with this laptop.",
            fix=f"Pair it first: tandem pair {name}",
        )
    return device


def _device(state: State, text: str) -> DeviceId:
    if state.me is not None and device_names.is_me(state, text):
        return state.me.device
    return _paired(state, text).device


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
    """Rows, and of how many if that was said."""
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
        what=f"{option} does not take {plain(text, 60)!r}.",
        fix=f"Write it as {option} {wanted}." if "=" in wanted or "," in wanted else f"It takes {wanted}.",
    )
