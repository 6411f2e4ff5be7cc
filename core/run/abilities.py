"""Whether a laptop can take part in a run, and whether every member's Tandem is new enough for a plan.

Checked before any user is asked. Imports little: the window asks it, too.
"""

from __future__ import annotations

from collections.abc import Callable

from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Plan
from core.vocabulary.state import Device, State
from core.vocabulary.versions import EXCHANGE, Versions


def why_not(device: Device) -> TandemError | None:
    """Why a laptop can take part in no run that begins now; None: it can."""
    name = device.shown_name
    if not device.paired:
        return TandemError(
            code="device-not-paired",
            what=f"{name} is not paired with this laptop.",
            fix="Pair it first: both people compare the same six digits.",
        )
    if not device.linked:
        return TandemError(
            code="device-offline",
            what=f"{name} is not connected" + (f": {device.problem.what}" if device.problem else "."),
            fix=f"See that {name} is on, awake and in the network, with Tandem running.",
        )
    if device.problem is not None:
        return TandemError.of(device.problem)
    if device.busy:
        return TandemError(
            code="device-busy",
            what=f"{name} is busy with another run.",
            fix="Wait until that one has ended, or stop it there.",
        )
    return None


def check(plan: Plan, state: State) -> None:
    """Raises ``TandemError``, which names the laptop."""
    if not plan.solo:
        _check_exchange(plan, state)
    # An older Tandem downloads what Keras keeps.
    sends_data = any(not data.kept_by_keras for data in plan.data)
    if sends_data and (name := _without(plan, state, lambda versions: versions.data)):
        raise TandemError(
            code="data-unlike",
            what=f"Tandem on {name} is too old for data folders.",
            fix="Update it, or put the data into the script's folder.",
        )
    is_rare = plan.sync != "exact" and not plan.solo
    if is_rare and (name := _without(plan, state, lambda versions: versions.rare)):
        raise TandemError(
            code="sync-unknown",
            what=f"Tandem on {name} is too old to meet rarely.",
            fix="Update it, or leave --sync out.",
        )


def _check_exchange(plan: Plan, state: State) -> None:
    for member in plan.members:
        known = state.devices.get(member.device)
        if known and known.versions and known.versions.exchange != EXCHANGE:
            raise TandemError(
                code="exchange-unlike",
                what=f"Tandem on {member.name} cannot meet others over TLS as Tandem here does "
                f"(version {known.versions.exchange} there, {EXCHANGE} here).",
                fix="Update Tandem on both laptops.",
            )


def _without(plan: Plan, state: State, able: Callable[[Versions], bool]) -> str:
    """The name of the first member whose Tandem is not able; ``""``: all are, as far as is known."""
    for member in plan.members:
        known = state.devices.get(member.device)
        if known and known.versions and not able(known.versions):
            return member.name
    return ""
