"""Where a stopped or failed run can go on, and resuming one that is not on screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from app.bridge import Bridge
from app.models import run_again
from core.vocabulary.answers import Answer, Refused, RunDetails, RunEntry
from core.vocabulary.commands import FindCheckpoints, GetRun, StartRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event, LinkDown, LinkUp
from core.vocabulary.ids import RunId


def ask_for_checkpoints(bridge: Bridge, entry: RunEntry) -> None:
    """Other laptops' newer checkpoints go into the state."""
    if run_again.may_go_on(entry):
        bridge.submit(FindCheckpoints(run=entry.run))


def link_changed(entry: RunEntry, events: Sequence[Event]) -> bool:
    """Whether the link of a laptop in this run changed: then ask again who has a checkpoint."""
    links = (event for event in events if isinstance(event, LinkUp | LinkDown))
    return any(event.device in entry.device_ids for event in links)


def resume_cut_off(bridge: Bridge, run: RunId, tell: Callable[[Problem], object]) -> None:
    """Does what ``tandem resume`` does, for a run that is not on screen. ``tell``: receives why it cannot
    continue."""

    def on_details(answer: Answer) -> None:
        if isinstance(answer, Refused):
            tell(answer.problem)
        if not isinstance(answer, RunDetails):
            return
        try:
            spec = replace(run_again.spec_of(answer.entry, bridge.state, resumes=True), resume=run)
        except TandemError as error:
            tell(error.problem)
            return

        def on_started(answer: Answer) -> None:
            if isinstance(answer, Refused):
                tell(run_again.with_other_ways(answer.problem, spec, bridge.state))

        bridge.submit(StartRun(spec=spec), on_started)

    bridge.submit(GetRun(run=run, points=False), on_details)
