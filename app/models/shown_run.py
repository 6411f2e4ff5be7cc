"""A run as its page shows it: from the state while it lasts, from its record afterwards. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.run_again import alone_helps, where_on
from app.words.device_names import member_names, name_of, names_of
from app.words.run_words import fetch_words, goes_on_words
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Finished, Phase, Stopped
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import Summary
from core.vocabulary.state import Run, State


@dataclass(frozen=True, slots=True)
class ShownRun:
    """``own``: it was started on this laptop. ``entry`` of the history, None while unknown.

    ``checkpoint``: where it can continue with local files; other laptops may have a newer one.
    """

    run: RunId
    phase: Phase
    summary: Summary | None
    plan: Plan | None
    names: dict[DeviceId, str]
    own: bool
    entry: RunEntry | None = None
    checkpoint: Moment | None = None

    @classmethod
    def live(cls, run: Run, state: State, record: RunDetails | None = None) -> ShownRun:
        """The present run, or the last one. ``record``: once it is over and its record read."""
        return cls(
            run=run.plan.run,
            phase=run.phase,
            summary=run.summary,
            plan=run.plan,
            names=names_of(state, run.members),
            own=state.me is not None and run.plan.starter == state.me.device,
            entry=record.entry if record is not None else None,
            checkpoint=record.checkpoint if record is not None else None,
        )

    @classmethod
    def past(cls, record: RunDetails) -> ShownRun:
        """A run of the history."""
        entry = record.entry
        return cls(
            run=entry.run,
            phase=entry.phase,
            summary=entry.summary,
            plan=record.plan,
            names=member_names(record),
            own=bool(entry.source),
            entry=entry,
            checkpoint=record.checkpoint,
        )

    @property
    def problem(self) -> Problem | None:
        """Why it failed."""
        return self.phase.problem if isinstance(self.phase, Failed) else None

    @property
    def differs(self) -> bool:
        """Whether it finished with a result that may not be one machine's."""
        return isinstance(self.phase, Finished) and self.summary is not None and self.summary.differs

    @property
    def good(self) -> bool:
        """Whether it finished with a result that nobody need doubt."""
        diverged = self.summary is not None and self.summary.diverged is not None
        return isinstance(self.phase, Finished) and not (self.differs or diverged)

    def goes_on(self, state: State) -> str:
        """Where it can continue, by all that is known now; ``""``: nowhere."""
        checkpoint, lender = where_on(self.run, self.checkpoint, state)
        ended_early = isinstance(self.phase, Stopped | Failed)
        return goes_on_words(checkpoint, lender) if ended_early and checkpoint is not None else ""

    def goes_on_alone(self, state: State) -> bool:
        """Whether it could go on or start over here alone, if other laptops prevent resuming it as it was."""
        may = self.own or bool(self.goes_on(state))
        return may and alone_helps(self.phase, self.plan, state)

    def fetching(self, state: State) -> str:
        """Progress of fetching its checkpoint; ``""`` while none is on its way."""
        fetch = state.fetch
        if fetch is None or fetch.run != self.run:
            return ""
        return fetch_words(fetch, name_of(state, fetch.device))
