"""Finds the device that a person means by a name, a nickname or the beginning of an id. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.state import Device, State
from core.vocabulary.text import plain

SHORTEST_ID = 4
LISTED = 8


def matching(devices: Iterable[Device], text: str) -> list[Device]:
    """Every device that ``text`` may mean: by full name first, else by the beginning of its id."""
    wanted = text.strip().casefold()
    named = [
        device
        for device in devices
        if wanted in (device.nickname.casefold(), device.name.casefold()) and wanted
    ]
    if named or len(wanted) < SHORTEST_ID:
        return named
    return [device for device in devices if device.device.startswith(wanted)]


def find(state: State, text: str, *, paired: bool = False) -> Device | None:
    """The device that ``text`` means; None if there is none. Raises ``TandemError`` if several match."""
    known = [device for device in state.devices.values() if device.paired or not paired]
    # A stranger may use a paired device's name: the paired one is meant.
    found = matching([device for device in known if device.paired], text) or matching(known, text)
    if len(found) > 1:
        listed = ", ".join(
            f"{plain(device.shown_name, 40)} ({short(device.device)})" for device in found[:LISTED]
        )
        raise TandemError(
            code="name-not-unique",
            what=f"Several devices are called {plain(text, 60)!r}: {listed}.",
            fix="Name the one you mean by the beginning of its id, as tandem devices shows it.",
        )
    return found[0] if found else None


def is_me(state: State, text: str) -> bool:
    """``me``, this laptop's own name or the beginning of its id."""
    if state.me is None:
        return False
    wanted = text.strip().casefold()
    if wanted == "me" or (len(wanted) >= SHORTEST_ID and state.me.device.startswith(wanted)):
        return True
    return wanted == state.me.name.casefold() and find(state, text, paired=True) is None


def unknown(state: State, text: str) -> TandemError:
    """The error that no device has that name; lists those that exist."""
    names = [
        plain(device.shown_name, 40) for device in state.devices.values() if device.seen or device.paired
    ]
    listed = ", ".join(names[:LISTED])
    there = f"Visible or paired: {listed}." if names else "No other device is visible or paired."
    return TandemError(
        code="unknown-device",
        what=f"No device is called {plain(text, 60)!r}. {there}",
        fix="Start Tandem on the other laptop, on the same network, or give its address: pair ADDRESS.",
    )


def paired(state: State, text: str) -> Device:
    """The paired device that ``text`` means. Raises ``TandemError``."""
    device = find(state, text)
    if device is None:
        raise unknown(state, text)
    if not device.paired:
        name = plain(device.shown_name, 40)
        raise TandemError(
            code="not-paired",
            what=f"{name} is not paired with this laptop.",
            fix=f"Pair it first: tandem pair {name}",
        )
    return device


def meant(state: State, text: str) -> DeviceId:
    """This laptop or a paired one. Raises ``TandemError``."""
    if state.me is not None and is_me(state, text):
        return state.me.device
    return paired(state, text).device


def other_names(state: State, device: DeviceId) -> list[str]:
    """Names of this laptop and its paired ones, except for one."""
    paired = (each for each in state.devices.values() if each.paired and each.device != device)
    names = [name for each in paired for name in (each.name, each.nickname) if name]
    return [*names, state.me.name] if state.me is not None else names


def names_of(state: State, devices: Iterable[DeviceId]) -> dict[DeviceId, str]:
    """Each device's display name on this screen."""
    names: dict[DeviceId, str] = {}
    for device in devices:
        if state.me is not None and device == state.me.device:
            names[device] = plain(state.me.name, 40)
        elif (known := state.devices.get(device)) is not None:
            names[device] = plain(known.shown_name, 40)
        else:
            names[device] = short(device)
    return names


def name_of(state: State, device: DeviceId) -> str:
    return names_of(state, (device,))[device]


def member_names(run: RunDetails) -> dict[DeviceId, str]:
    """The names that the members of a run had when it began."""
    return {member.device: plain(member.name, 40) for member in run.plan.members} if run.plan else {}
