"""What earlier runs of a script say of the next one's speed: nothing else is known before it begins."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from core.history.index import History
from core.history.read import read_plan
from core.speed.sentences import last_time
from core.vocabulary.answers import PlanMade
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Plan
from core.vocabulary.progress import Summary

LOOKED_AT = 200
"""Runs, the newest first."""


def newest_alike(history: History, runs: Path, plan: Plan, source: str) -> tuple[Summary, Plan] | None:
    """The newest run of the script at ``source`` on exactly the devices of ``plan`` whose speed is known.

    Blocks: on the history's thread. Without a history that can be read, nothing is known.
    """
    wanted = {member.device for member in plan.members}
    try:
        entries = history.newest(LOOKED_AT)
    except TandemError:
        return None
    for entry in entries:
        if entry.source != source or len(entry.devices) != len(wanted):
            continue
        then = read_plan(runs / entry.run)
        if then is None or {member.device for member in then.members} != wanted:
            continue
        if last_time(entry.summary, then):
            return entry.summary, then
    return None


def with_last_time(made: PlanMade, summary: Summary, then: Plan) -> PlanMade:
    """``then`` is that run's plan. Advice is for the run to be: what it does already is not proposed."""
    plan = made.plan
    names = {member.device: member.name for member in plan.members}
    said = last_time(summary, replace(then, wire=plan.wire, balance=plan.balance), names)
    shares = summary.settled.shares if summary.settled is not None else {}
    devices = [member.device for member in plan.members]
    known = plan.balance and all(device in shares for device in devices)
    return replace(
        made,
        expectation=said.what,
        advice=said.fix,
        last_shares={device: shares[device] for device in devices} if known else {},
    )
