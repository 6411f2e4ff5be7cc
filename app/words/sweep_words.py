"""Texts about sweeps and their trials, and their lines in the history."""

from __future__ import annotations

import shlex

from core.history.best import best_trial, metric_of, ranked
from core.vocabulary import units
from core.vocabulary.answers import RunEntry, RunList
from core.vocabulary.ids import started_s
from core.vocabulary.sweep import Sweep, Trial
from core.vocabulary.text import plain


def arguments_words(trial: Trial) -> str:
    return plain(shlex.join(trial.arguments), 120) or "no arguments"


def trial_words(trial: Trial, sweep: Sweep) -> str:
    """``Trial 3 of 12 (--lr 0.1)``."""
    return f"Trial {trial.number} of {len(sweep.trials)} ({arguments_words(trial)})"


def value_words(trial: Trial, metric: str) -> str:
    """``val_loss 0.1234``; ``""`` where it has none."""
    if trial.diverged is not None:
        return trial.diverged.words
    return f"{plain(metric, 40)} {trial.best[metric].value:.4g}" if metric in trial.best else ""


def state_words(trial: Trial) -> str:
    laptop = plain(trial.laptop, 40)
    match trial.status:
        case "running":
            epochs = f", {units.number_of(trial.epochs, 'epoch')}" if trial.epochs else ""
            return f"on {laptop}{epochs}"
        case "finished":
            return f"finished on {laptop}"
        case "failed":
            return f"failed on {laptop}" if laptop else "failed"
    return "waiting"


def change_words(trial: Trial, before: Trial | None, sweep: Sweep) -> str:
    """A line for what happened to a trial; ``""`` for an epoch's end."""
    if before is not None and (before.status, before.begun) == (trial.status, trial.begun):
        return ""
    name, laptop = trial_words(trial, sweep), plain(trial.laptop, 40)
    why = f": {plain(trial.problem.what, 400)}" if trial.problem is not None else "."
    match trial.status:
        case "running":
            return f"{name} begins{' again' if trial.begun > 1 else ''} on {laptop}."
        case "finished":
            value = value_words(trial, metric_of(sweep))
            return f"{name} finished on {laptop}{f': {value}' if value else ''}."
        case "failed":
            return f"{name} failed on {laptop}{why}"
    return f"{name} was interrupted on {laptop} and is waiting{why}" if sweep.phase == "running" else ""


def outcome_words(sweep: Sweep) -> str:
    """``Finished: 12 of 12 trials have a result.``"""
    done = sum(trial.status == "finished" for trial in sweep.trials)
    failed = sum(trial.status == "failed" for trial in sweep.trials)
    more = f", {failed} failed" if failed else ""
    match sweep.phase:
        case "finished":
            return f"Finished: {done} of {len(sweep.trials)} trials have a result{more}."
        case "failed":
            why = plain(sweep.problem.what, 400) if sweep.problem is not None else ""
            return f"Ended with {done} of {len(sweep.trials)} results{more}. {why}".strip()
        case "stopped":
            return f"Stopped: {done} of {len(sweep.trials)} trials have a result{more}."
    return f"{done} of {len(sweep.trials)} trials have a result{more}."


def best_words(sweep: Sweep) -> str:
    """``""`` where no trial can be called the best."""
    best = best_trial(sweep)
    if best is None:
        return ""
    value = value_words(best, metric_of(sweep))
    return f"Best: trial {best.number} ({arguments_words(best)}), {value}."


def trials_words(entry: RunEntry) -> str:
    """``12 trials, 1 failed``; ``""`` for a run."""
    failed = f", {entry.failed_trials:,} failed" if entry.failed_trials else ""
    return f"{units.number_of(entry.trials, 'trial')}{failed}" if entry.trials else ""


def lines_of(found: RunList, *, trials: bool = False) -> list[RunEntry]:
    """The history, newest first: a sweep is one line, without its trials unless they are asked for."""
    sweeps = {entry.run for entry in found.sweeps}
    runs = (entry for entry in found.runs if trials or entry.sweep not in sweeps)
    return sorted(
        (*runs, *found.sweeps), key=lambda entry: started_s(entry.run, entry.started_s), reverse=True
    )


def in_order(sweep: Sweep) -> tuple[Trial, ...]:
    """All trials: those that can be compared first, the best one at the top."""
    first = ranked(sweep)
    known = {trial.number for trial in first}
    return (*first, *(trial for trial in sweep.trials if trial.number not in known))
