"""Whether trainers here and on each linked laptop can reach each other. On the core loop.

Members that meet over TLS need only one direction, since either can call; sealed trainers need both.
"""

from __future__ import annotations

import asyncio

from core.doctor.network import TOPIC, command_to_let_in, let_trainers_in
from core.doctor.trial import Reach
from core.doctor.view import Examined, error, note, ok
from core.vocabulary.answers import Finding
from core.vocabulary.peer_messages import Dialled
from core.vocabulary.state import Device

_WENT: dict[Dialled, str] = {
    "answers": "was answered",
    "silent": "got no answer",
    "refused": "was refused",
    "unreachable": "was rejected on the way",
    "stranger": "was answered by something else",
}
_BOTH = "Scripts with a strategy that is not a mirrored one need both directions."
_ENOUGH = "One direction is enough for runs that Tandem manages: either laptop can connect."


async def check_reach(view: Examined) -> list[Finding]:
    """Tries all linked laptops at once; takes some seconds if a firewall drops connections."""
    linked = [device for device in view.state.devices.values() if device.paired and device.linked]
    if not linked:
        return [note("reach-nobody", TOPIC, "No paired laptop is connected, so this could not be tested.")]
    return list(await asyncio.gather(*(_of(device, view) for device in linked)))


async def _of(device: Device, view: Examined) -> Finding:
    name = device.shown_name
    reach = await view.try_reach(device.device) if view.try_reach else None
    if reach is None:
        untried = f"Tandem could not test whether trainers on {name} and here reach each other"
        return note("reach-untried", TOPIC, f"{untried}: {name} did not answer.", "Check again.")
    return finding(name, reach)


def finding(name: str, reach: Reach) -> Finding:
    """The finding for a result. ``name``: the other laptop's."""
    closed_here = (
        f"A connection from {name} to a trainer's port here ({reach.own_host}) {_WENT[reach.inward]}"
    )
    closed_there = (
        f"A connection from here to a trainer's port on {name} ({reach.peer_host}) {_WENT[reach.outward]}"
    )
    open_here = f"On this laptop: {let_trainers_in(reach.peer_host)}."
    command = command_to_let_in(reach.peer_host.partition("%")[0])
    open_there = (
        f"On {name}: let TCP ports 20000–32000 in from {reach.own_host.partition('%')[0]} in its firewall; "
        "its own doctor shows the command."
    )
    match reach.inward == "answers", reach.outward == "answers":
        case True, True:
            return ok("reach", TOPIC, f"Trainers on {name} and here reach each other in both directions.")
        case False, True:
            what = f"{closed_here}, probably by the firewall here; the other direction is open. {_ENOUGH}"
            return note("reach-closed-here", TOPIC, what, f"{_BOTH} {open_here}", command=command)
        case True, False:
            what = f"{closed_there}, probably by {name}'s firewall; the other direction is open. {_ENOUGH}"
            return note("reach-closed-there", TOPIC, what, f"{_BOTH} {open_there}")
    return error(
        "reach-closed",
        TOPIC,
        f"{closed_here}. {closed_there}. So trainers can't connect, probably because of both firewalls.",
        f"Open one of the two. {open_here} {open_there} {_BOTH}",
        command=command,
    )
