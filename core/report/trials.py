"""A sweep on a report's page: its trials, the best first, and the curves of the best ones. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from core.history.best import best_trial, metric_of, ranked
from core.report import plots
from core.report.curves import Curve, Panel, loss_first, panels
from core.report.points import MEASURED, USES
from core.vocabulary import units
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.sweep import Sweep, Trial

MOST_DRAWN = 6
"""Best trials whose curves are drawn: as many as the page has colours."""


@dataclass(frozen=True, slots=True)
class _TrialRow:
    number: int
    arguments: str
    seed: int
    result: str
    state: str
    run: str
    problem: Problem | None


def parts(sweep: Sweep, entry: RunEntry, runs: Mapping[RunId, RunDetails]) -> dict[str, object]:
    """Parts of the page's template. ``entry``: the sweep's own; ``runs``: of the best trials."""
    metric, best = metric_of(sweep), best_trial(sweep)
    first = ranked(sweep)
    numbers = {trial.number for trial in first}
    done = sum(trial.status == "finished" for trial in sweep.trials)
    count = len(entry.devices)
    figures = [("trials", f"{len(sweep.trials):,}", f"{done:,} with a result")]
    if best is not None:
        figures.append((f"best {metric}", f"{best.best[metric].value:.4g}", f"trial {best.number}"))
    shown = _panels(first[:MOST_DRAWN], runs)
    return {
        "name": sweep.name or f"Trials of {sweep.script}",
        "note": sweep.note,
        "outcome": sweep.phase,
        "lead": [sweep.phase, units.number_of(count, "laptop"), units.moment(entry.started_s)],
        "figures": figures,
        "problem": sweep.problem,
        "curves": plots.data(shown) if shown else "",
        "trials": [
            _row(trial, metric)
            for trial in chain(first, (each for each in sweep.trials if each.number not in numbers))
        ],
        "about": [("sweep", sweep.sweep), ("script", entry.source), ("project", sweep.project)],
    }


def _row(trial: Trial, metric: str) -> _TrialRow:
    value = f"{metric} {trial.best[metric].value:.6g}" if metric in trial.best else ""
    return _TrialRow(
        number=trial.number,
        arguments=shlex.join(trial.arguments),
        seed=trial.seed,
        result=trial.diverged.words if trial.diverged is not None else value,
        state=f"{trial.status} on {trial.laptop}" if trial.laptop else trial.status,
        run=trial.run or "",
        problem=trial.problem,
    )


def _panels(trials: tuple[Trial, ...], runs: Mapping[RunId, RunDetails]) -> list[Panel]:
    """A plot for each metric, validation apart from training, with a curve for each trial."""
    found: dict[str, Panel] = {}
    for trial in trials:
        details = runs.get(trial.run) if trial.run is not None else None
        for panel in panels(details) if details is not None else ():
            if panel.title in (*USES, *MEASURED):
                continue
            # The curve of epochs, where there is one, stands before that of steps.
            curves = {curve.name: curve for curve in reversed(panel.curves)}
            for name, curve in curves.items():
                label = f"{trial.number}: {shlex.join(trial.arguments)}"
                drawn = Curve(label, curve.points, by_epoch=curve.by_epoch, bad=curve.bad)
                found.setdefault(name, Panel(name)).curves.append(drawn)
    return [found[name] for name in sorted(found, key=loss_first)]
