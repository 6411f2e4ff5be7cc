"""``tandem pair NAME|ADDRESS``: pairs with a visible device, or with one at an address."""

from __future__ import annotations

import argparse

from app.cli import pairing
from app.cli.command_line import argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.pipes import Stdin
from app.cli.prompts import Asker
from app.cli.screen import Screen
from app.follower import Follower
from app.words import device_names
from core.net import address
from core.vocabulary.answers import Done
from core.vocabulary.commands import CancelPairing, Pair
from core.vocabulary.errors import TandemError
from core.vocabulary.state import Device, State
from core.vocabulary.text import plain

LOOK_S = 10.0


@node_subcommand(
    "pair with another laptop",
    argument("device", metavar="NAME|ADDRESS", help="its name or address, as the other laptop shows it"),
    more="""\
With --json the code comes as one line, {"event": "code", "name": ..., "code": ...}; answer with a line
same or different on stdin; the last line says {"ok": true, "device": ...} or {"ok": false, "problem": ...}.
""",
)
async def pair(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    async with Asker(screen, Stdin()) as asker:
        return await pair_on(follower, asker, screen, arguments.device)


async def pair_on(
    follower: Follower, asker: Asker, screen: Screen, text: str, *, look_s: float = LOOK_S
) -> int:
    """Resolves ``text``, requests the pairing and follows it to its end."""
    command = await target(follower, text, look_s)
    follower.skip()
    await follower.submit(command, Done)
    try:
        problem = await pairing.wait_ended(follower, asker, screen)
    except BaseException:
        await follower.node.submit(CancelPairing())
        raise
    if problem is not None:
        raise TandemError.of(problem)
    under_way = follower.state.pairing
    device = follower.state.devices.get(under_way.device) if under_way and under_way.device else None
    name = plain(device.shown_name if device else text, 40)
    screen.end({"ok": True, "device": device}, f"Paired with {name}.", "bold green")
    return ExitCode.OK


async def target(follower: Follower, text: str, look_s: float = LOOK_S) -> Pair:
    """The command that pairs with ``text``. Raises ``TandemError`` if nothing matches."""

    def seen(state: State) -> Device | None:
        found = device_names.find(state, text)
        return found if found is not None and found.addresses else None

    at = _address(text)
    if (found := await follower.until(seen, 0 if at else look_s)) is not None:
        return Pair(device=found.device)
    if at is None:
        raise device_names.unknown(follower.state, text)
    return Pair(address=at)


def _address(text: str) -> str | None:
    """``text`` if it can only be an address: it has a dot or a colon, though device names may have them
    too."""
    if "." not in text and ":" not in text:
        return None
    try:
        return str(address.parse(text))
    except TandemError:
        return None
