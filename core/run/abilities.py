"""Whether every member's Tandem is new enough for a plan. Checked before any user is asked."""

from __future__ import annotations

from collections.abc import Callable

from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Plan
from core.vocabulary.state import State
from core.vocabulary.versions import EXCHANGE, Versions


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
