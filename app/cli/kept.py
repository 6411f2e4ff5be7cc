"""``tandem kept NAME``: what two laptops keep of each other's projects; ``tandem remove NAME`` removes it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from app import device_names
from app.cli import completion
from app.cli.command_line import add_subcommand, home_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.connection import connect
from app.device_words import kept_words, size_words
from app.follower import Follower
from core.vocabulary.answers import KeptList
from core.vocabulary.commands import ListKept, RemoveKept
from core.vocabulary.errors import TandemError
from core.vocabulary.holdings import Kept, KeptProject, KeptRun
from core.vocabulary.ids import ProjectId, short, started_s
from core.vocabulary.state import Device, State
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from rich.table import Table

LINK_S = 10.0
"""For a node that is started for this command alone: after so long the other laptop is not there."""


def add_kept(parsers: Any) -> None:
    parser = add_subcommand(
        parsers, "kept", "what two laptops keep of each other's projects", kept, json=True
    )
    _add_device(parser)


def add_remove(parsers: Any) -> None:
    parser = add_subcommand(
        parsers,
        "remove",
        "remove this laptop's projects, and what their runs left, from another one",
        remove,
        json=True,
        more="What is recorded of the runs stays in both lists of runs: when they were, and how they went.",
    )
    _add_device(parser)
    parser.add_argument(
        "--project", metavar="ID", help="only this one: the beginning of its id, as tandem kept shows it"
    )
    parser.add_argument(
        "--here", action="store_true", help="the other way round: that laptop's projects, from this one"
    )


def _add_device(parser: argparse.ArgumentParser) -> None:
    device = parser.add_argument("device", metavar="NAME", help="as tandem devices shows it")
    completion.completes(device, completion.devices)


async def kept(arguments: argparse.Namespace, screen: Screen) -> int:
    async with connect(home_of(arguments)) as connection:
        with Follower(connection) as follower:
            return await kept_on(follower, screen, arguments.device)


async def remove(arguments: argparse.Namespace, screen: Screen) -> int:
    async with connect(home_of(arguments)) as connection:
        with Follower(connection) as follower:
            return await remove_on(
                follower, screen, arguments.device, project=arguments.project, here=arguments.here
            )


async def kept_on(follower: Follower, screen: Screen, text: str) -> int:
    device = await _find(follower, text)
    found = await follower.submit(ListKept(device=device.device), KeptList)
    if screen.json:
        screen.result({"ok": True, "kept": found})
        return ExitCode.OK
    if found.problem is not None:
        screen.problem(found.problem)
    name = plain(device.shown_name, 40)
    for title, each in ((f"Yours on {name}", found.there), (f"Of {name} here", found.here)):
        if each is not None:
            screen.say(f"{title}: {kept_words(each)}")
            if each.projects or each.runs:
                screen.show(_table(each))
    return ExitCode.OK


async def remove_on(follower: Follower, screen: Screen, text: str, *, project: str | None, here: bool) -> int:
    """Raises ``TandemError`` where there is no such project, or not everything could be removed."""
    device = await _find(follower, text)
    before = await follower.submit(ListKept(device=device.device), KeptList)
    side = before.here if here else before.there
    if side is None:
        assert before.problem is not None
        raise TandemError.of(before.problem)
    wanted = None if project is None else _project(side, project)
    after = await follower.submit(
        RemoveKept(device=device.device, where="here" if here else "there", project=wanted), KeptList
    )
    if screen.json:
        screen.result({"ok": True, "kept": after})
        return ExitCode.OK
    left = after.here if here else after.there
    name = plain(device.shown_name, 40)
    place = f"of {name} on this laptop" if here else f"of yours on {name}"
    freed = max(0, side.bytes - (left or Kept()).bytes)
    screen.say(f"Removed {size_words(freed)}. Left {place}: {kept_words(left or Kept())}")
    return ExitCode.OK


async def _find(follower: Follower, text: str) -> Device:
    device = device_names.find(follower.state, text, paired=True)
    if device is None:
        raise device_names.unknown(follower.state, text)

    def linked(state: State) -> bool | None:
        found = state.devices.get(device.device)
        return True if found is not None and found.linked else None

    if follower.own:
        await follower.until(linked, LINK_S)
    return device


def _project(kept: Kept, text: str) -> ProjectId:
    known = dict.fromkeys((*(each.project for each in kept.projects), *(run.project for run in kept.runs)))
    found = [project for project in known if project.startswith(text.casefold())] if text else []
    if len(found) != 1:
        listed = ", ".join(short(project) for project in list(known)[:8]) or "none"
        raise TandemError(
            code="project-unknown",
            what=f"{'Several projects begin' if found else 'No project begins'} with {plain(text, 64)!r}.",
            fix=f"Those that are kept: {listed}. See tandem kept.",
        )
    return found[0]


def _table(kept: Kept) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("project", "script", "what", "size", "last used"):
        table.add_column(column, overflow="fold", no_wrap=column == "project")
    lines: Sequence[KeptProject | KeptRun] = (*kept.projects, *kept.runs)
    for each in lines:
        if isinstance(each, KeptProject):
            also = ", sent by another laptop, too" if each.of_others else ""
            what, when_s = f"{each.files} files{also}", each.used_s
        else:
            what, when_s = f"run {each.run}", started_s(each.run, each.started_s)
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(when_s))
        table.add_row(short(each.project), plain(each.script, 60), what, size_words(each.bytes), when)
    return table
