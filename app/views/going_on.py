"""Go on with a run that was stopped or failed: with its laptops, roles and shares, from its checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from app import repeating
from app.bridge import Bridge
from app.widgets.outcome_card import OutcomeCard
from core.answers import Answer, Refused, RunEntry
from core.commands import StartRun
from core.errors import TandemError

_FIX = "Pair it again under Devices, or go on without it from a terminal: tandem resume {run} --solo."


def go_on(
    bridge: Bridge, outcome: OutcomeCard, entry: RunEntry, on_begun: Callable[[], object] = lambda: None
) -> None:
    """What ``tandem resume`` does. ``outcome`` shows ``entry``'s run, and why it cannot go on."""
    try:
        spec = repeating.spec_of(entry, bridge.state, fix=_FIX.format(run=entry.run))
    except TandemError as error:
        outcome.show_start(error.problem, starting=False)
        return

    def on_answer(answer: Answer) -> None:
        refused = answer.problem if isinstance(answer, Refused) else None
        if outcome.folder == entry.folder:  # else another run is looked at meanwhile
            outcome.show_start(refused, starting=False)
        if refused is None:
            on_begun()

    outcome.show_start(None, starting=True)
    bridge.submit(StartRun(spec=replace(spec, resume=entry.run)), on_answer)
