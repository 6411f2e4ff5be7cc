"""Resuming a run that was stopped or failed: with its laptops, roles and shares, from its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from app import run_again
from app.bridge import Bridge
from app.device_names import names_of
from app.run_words import fetch_words
from app.widgets.outcome_card import OutcomeCard
from core.vocabulary.answers import Answer, Refused, RunEntry
from core.vocabulary.commands import FindCheckpoints, StartRun
from core.vocabulary.errors import TandemError
from core.vocabulary.events import Event, LinkDown, LinkUp
from core.vocabulary.ids import RunId
from core.vocabulary.state import State

_FIX = "Pair it again under Devices, or resume without it from a terminal: tandem resume {run} --solo."


def fetch_progress(run: RunId, state: State) -> str:
    """How much of a run's checkpoint has come; ``""`` while none is on its way."""
    fetch = state.fetch
    if fetch is None or fetch.run != run:
        return ""
    return fetch_words(fetch, names_of(state, [fetch.device])[fetch.device])


def ask_for_checkpoints(bridge: Bridge, entry: RunEntry) -> None:
    """What other laptops have that is newer comes into the state."""
    if run_again.may_go_on(entry):
        bridge.submit(FindCheckpoints(run=entry.run))


def link_changed(entry: RunEntry, events: Sequence[Event]) -> bool:
    """Whether a laptop of this run was: then it is to be asked anew who has a checkpoint."""
    links = (event for event in events if isinstance(event, LinkUp | LinkDown))
    return any(event.device in entry.device_ids for event in links)


def resume_run(
    bridge: Bridge, outcome: OutcomeCard, entry: RunEntry, on_begun: Callable[[], object] = lambda: None
) -> None:
    """What ``tandem resume`` does. ``outcome`` shows ``entry``'s run, and why it cannot go on."""
    try:
        spec = run_again.spec_of(entry, bridge.state, fix=_FIX.format(run=entry.run))
    except TandemError as error:
        outcome.show_start(error.problem, starting=False)
        return

    def on_answer(answer: Answer) -> None:
        refused = answer.problem if isinstance(answer, Refused) else None
        if outcome.folder == entry.folder:  # else another run is looked at meanwhile
            stopped = refused is not None and refused.code == "stopped"  # as the user wanted it
            outcome.show_start(None if stopped else refused, starting=False)
        if refused is None:
            on_begun()

    outcome.show_start(None, starting=True)
    bridge.submit(StartRun(spec=replace(spec, resume=entry.run)), on_answer)
