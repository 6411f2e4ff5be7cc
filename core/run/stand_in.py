"""Finds in the records the run for which this laptop stands in, so that it outlives a restart. Blocks: use
the history's thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.history.history import History
from core.history.read import read_plan
from core.project import checkpoint_store
from core.run.resume.plan import owner_of
from core.run.resume.serve import newest_of
from core.vocabulary import run_folder
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Plan, RunOwner

RUNS_SEARCHED = 50
"""The number of newest runs searched."""


@dataclass(slots=True)
class StandIn:
    """A lost starter's run that is kept here until the starter takes it back. ``step``: steps done."""

    owner: RunOwner
    step: int = 0


def last_stand_in(history: History, runs: Path, me: DeviceId) -> StandIn | None:
    """The newest one that was not handed back; None where there is none, or no checkpoint of it."""
    try:
        entries = history.newest(RUNS_SEARCHED)
    except TandemError:
        return None
    back = set[DeviceId]()
    """Starters of newer runs with this laptop: they have returned since."""
    for entry in entries:
        plan = read_plan(runs / entry.run)
        if plan is None:
            continue
        if not _went_on_without(plan, entry, me):
            back.add(plan.starter)
            continue
        owner = owner_of(plan)
        if owner.device in back or (isinstance(entry.phase, Stopped) and entry.phase.back):
            return None
        newest = checkpoint_store.newest_by_size(runs / newest_of(runs, owner.run) / run_folder.CHECKPOINTS)
        return None if newest is None else StandIn(owner, newest.head.moment.step)
    return None


def _went_on_without(plan: Plan, entry: RunEntry, me: DeviceId) -> bool:
    """Whether this run's starter was lost, or stood in for one that was."""
    if plan.owner is not None:
        return plan.owner.device != me
    own = next((member.name for member in plan.members if member.device == me), None)
    phase = entry.phase
    return plan.starter != me and isinstance(phase, Stopped) and phase.goes_on and phase.by == own
