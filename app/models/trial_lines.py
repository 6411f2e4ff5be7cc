"""Which trials of a sweep are drawn over each other, and what their lines are called. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from app.models.run_comparison import differing
from core.history.best import best_trial, ranked
from core.vocabulary.ids import RunId
from core.vocabulary.sweep import Sweep, Trial

MOST = 12
"""More lines could not be told apart (``theme.run_colour``)."""


class TrialLine(NamedTuple):
    """``label``: such as ``3: lr 0.01``. ``state``: changes when there are more points."""

    number: int
    run: RunId
    label: str
    best: bool
    state: tuple[int, str]


def trial_lines(sweep: Sweep) -> tuple[TrialLine, ...]:
    """By number. If there are more than ``MOST``: those under way, then the best ones, then those without a
    result."""
    begun = [trial for trial in sweep.trials if trial.run is not None and trial.status != "waiting"]
    places = {trial.number: place for place, trial in enumerate(ranked(sweep))}

    def rank(trial: Trial) -> tuple[bool, int]:
        return trial.status != "running", places.get(trial.number, len(sweep.trials))

    drawn = sorted(sorted(begun, key=rank)[:MOST], key=lambda trial: trial.number)
    best = best_trial(sweep)
    words = _differing(tuple(trial.arguments for trial in sweep.trials))
    return tuple(
        TrialLine(
            number=trial.number,
            run=trial.run,
            label=_label(trial, words[trial.number - 1], is_best=trial == best),
            best=trial == best,
            state=(trial.epochs, trial.status),
        )
        for trial in drawn
        if trial.run is not None
    )


@lru_cache(maxsize=2)
def _differing(arguments: tuple[tuple[str, ...], ...]) -> list[str]:
    """The same for all of a sweep's many changes."""
    return differing(arguments)


def _label(trial: Trial, words: str, *, is_best: bool) -> str:
    ended = trial.diverged is not None or trial.status == "failed"
    how = "NaN" if trial.diverged is not None else "failed" if ended else "best" if is_best else ""
    label = f"{trial.number}: {words}" if words else f"trial {trial.number}"
    return f"{label}, {how}" if how else label
