"""``tandem environment``: a second environment with another laptop's Python, TensorFlow and Keras."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from app.cli import completion
from app.cli.command_line import argument, home_of, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.cli.screen import Screen
from app.connection import connect
from app.follower import Follower
from app.system import changeover
from app.words import device_names
from core.environment.make import Making, version_output
from core.environment.recipe import Recipe, WantedVersions, can_make, extras_here, recipe
from core.home.home import Home
from core.node.client import Client
from core.vocabulary import environments, units
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.state import State
from core.vocabulary.text import plain
from core.vocabulary.versions import Versions, installed, same_on_both

LINK_LIMIT_S = 15.0


@subcommand(
    "make a second environment with another laptop's Python, TensorFlow and Keras",
    argument(
        "device",
        metavar="NAME",
        nargs="?",
        help="a paired laptop whose versions to use",
        completer=completion.devices,
    ),
    argument("--python", metavar="VERSION", help="instead of NAME: this version, such as 3.12"),
    argument("--tensorflow", metavar="VERSION", help="this exact version, such as 2.21.0"),
    argument("--keras", metavar="VERSION", help="this exact version, such as 3.15.1"),
    argument("--folder", metavar="DIR", help="the new environment's folder (the default is shown)"),
    argument(
        "--source",
        metavar="WHEEL",
        help="install Tandem from this wheel, folder or address (default: the source of this one)",
    ),
    more="""\
It is made beside this one, with the same key, paired laptops, settings and runs, so only one of the two can
run at a time. Its contents are shown first. Ctrl-C cancels and removes an unfinished environment.
""",
)
async def environment(arguments: argparse.Namespace, screen: Screen) -> int:
    ours, runs_here = installed(), False
    if arguments.device is not None:
        async with connect(home_of(arguments)) as connection:
            runs_here = not connection.own
            with Follower(connection) as follower:
                wanted = WantedVersions.like(await versions_of(follower, arguments.device, ours))
    elif any((arguments.python, arguments.tensorflow, arguments.keras)):
        wanted, runs_here = WantedVersions(ours.python), await _runs_in(home_of(arguments))
    else:
        raise TandemError(
            code="bad-option",
            what="No versions were given.",
            fix="Give a paired laptop, or versions: tandem environment --python 3.12.",
        )
    wanted = WantedVersions(
        arguments.python or wanted.python,
        arguments.tensorflow or wanted.tensorflow,
        arguments.keras or wanted.keras,
    )
    folder = Path(arguments.folder).expanduser().absolute() if arguments.folder else None
    maker = await asyncio.to_thread(environments.find_maker)
    if arguments.source:
        maker = replace(maker, source=_whole(arguments.source))
    extras = extras_here()
    made = await asyncio.to_thread(
        lambda: recipe(maker, wanted, ours, folder=folder, extras=extras, able=can_make)
    )
    home = getattr(arguments, "home", None) or ""
    return await make(made, screen, runs_here=runs_here, home=home)


async def _runs_in(home: Home) -> bool:
    """Whether a Tandem is running there; starts none."""
    try:
        client = await Client.connect(home)
    except TandemError:
        return False
    await client.close()
    return True


def _whole(source: str) -> str:
    """An address or an absolute path: never a name to be looked up in an index."""
    return source if "://" in source else str(Path(source).expanduser().absolute())


async def versions_of(
    follower: Follower, text: str, ours: Versions, limit_s: float = LINK_LIMIT_S
) -> Versions:
    """The versions of the paired laptop with this name. Raises ``TandemError``, also if they equal ours."""
    device = device_names.find(follower.state, text, paired=True)
    if device is None:
        raise device_names.unknown(follower.state, text)

    def known(state: State) -> Versions | None:
        return state.devices[device.device].versions

    theirs, name = await follower.until(known, limit_s), plain(device.shown_name, 40)
    if theirs is None:
        raise TandemError(
            code="not-connected",
            what=f"{name} is not connected, so its versions are unknown.",
            fix="Open Tandem there. Or give the versions that tandem --version shows there: "
            "tandem environment --python 3.12.",
        )
    if theirs.protocol != ours.protocol:
        raise TandemError(
            code="versions-differ",
            what=f"{name} has Tandem {plain(theirs.tandem, 20)}, and this laptop {ours.tandem}: they are not "
            "compatible.",
            fix=same_on_both("Tandem"),
        )
    if WantedVersions.like(theirs) == WantedVersions.like(ours):
        raise TandemError(
            code="versions-agree",
            what=f"{name} has the same versions as this laptop: {WantedVersions.like(ours)}.",
            fix="Nothing to do: you can train together.",
        )
    return theirs


async def make(made: Recipe, screen: Screen, *, runs_here: bool = False, home: str = "") -> int:
    """``runs_here``: a Tandem of this home runs and keeps running. ``home``: as given by ``--home``."""
    screen.say(f"Tandem with {made.wanted}, in {made.folder}", "bold")
    if not await asyncio.to_thread(version_output, made):
        screen.say(
            f"This downloads up to {units.size(made.download_bytes)} and takes {units.size(made.disk_bytes)} "
            "on the disk. It may take some minutes; press Ctrl-C to cancel."
        )
    making = Making(made, lambda line: screen.say(plain(line, 1000), "dim"))
    with Interrupts() as interrupts:
        work = asyncio.create_task(asyncio.to_thread(making.run), name="making")
        ended = asyncio.create_task(interrupts.wait_next(), name="interrupt")
        try:
            await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            if not work.done():
                screen.say("Stopping, and removing the unfinished environment.")
                making.stop()
        said = await work
    if not said:
        screen.problem(_INTERRUPTED)
        return ExitCode.INTERRUPTED
    if screen.json:
        screen.result({"ok": True, "folder": str(made.folder), "tandem": str(made.tandem), "version": said})
        return ExitCode.OK
    for line in ready_lines(made, said, runs_here=runs_here, home=home, in_menu=changeover.is_in_menu()):
        screen.say(line)
    return ExitCode.OK


def ready_lines(made: Recipe, said: str, *, runs_here: bool, in_menu: bool, home: str = "") -> list[str]:
    """How to use it."""
    lines = [f"Ready: {plain(said, 200)}.", f"Start it: {made.start(home=home)}"]
    if runs_here:
        lines.append("First close the Tandem that is open here: only one of the two can run at a time.")
    if in_menu:
        lines.append(f"To put it in the menu instead of this one: {made.start('install-desktop')}")
    lines.append(f"To install other packages that your scripts import: {made.install} NAME")
    return lines


_INTERRUPTED = Problem(
    code="environment-stopped",
    what="It was stopped, and the unfinished environment was removed.",
    fix="Start it again at any time. Complete downloads are kept.",
)
