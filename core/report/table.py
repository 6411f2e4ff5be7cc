"""A run's epochs as CSV for spreadsheets and as JSON for programs; a sweep's trials as CSV. Pure."""

from __future__ import annotations

import csv
import io
import shlex

from core.report.curves import loss_first, member_names
from core.vocabulary import wire
from core.vocabulary.answers import RunDetails
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.progress import EpochEnd
from core.vocabulary.sweep import Sweep

_COLUMNS = ("member", "fit", "epoch", "steps", "seconds", "epoch_steps", "epoch_steps_planned")
_OF_TRIALS = ("trial", "arguments", "seed", "status", "laptop", "run")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def history_csv(details: RunDetails) -> str:
    """One row per epoch and member; ``fit`` and ``epoch`` count from 1. A missing value is an empty cell.

    ``epoch_steps`` of ``epoch_steps_planned`` steps were done: fewer if the epoch was interrupted.
    """
    rows = [(name, epoch) for _, name, epochs in _members(details) for epoch in epochs]
    metrics = sorted({metric for _, epoch in rows for metric in epoch.values}, key=loss_first)
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow((*_COLUMNS, *(_cell(metric) for metric in metrics)))
    for name, epoch in rows:
        values = (epoch.values.get(metric, "") for metric in metrics)
        numbers = (epoch.fit + 1, epoch.epoch + 1, epoch.step + 1, round(epoch.seconds, 3))
        planned = ("" if each is None else each for each in (epoch.steps, epoch.steps_in_epoch))
        table.writerow((_cell(name), *numbers, *planned, *values))
    return text.getvalue()


def trials_csv(sweep: Sweep) -> str:
    """One row per trial, with its best values. A missing value is an empty cell."""
    metrics = sorted({metric for trial in sweep.trials for metric in trial.best}, key=loss_first)
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow((*_OF_TRIALS, *(_cell(f"best {metric}") for metric in metrics)))
    for trial in sweep.trials:
        values = (trial.best[metric].value if metric in trial.best else "" for metric in metrics)
        arguments, laptop = _cell(shlex.join(trial.arguments)), _cell(trial.laptop)
        table.writerow((trial.number, arguments, trial.seed, trial.status, laptop, trial.run or "", *values))
    return text.getvalue()


def history_json(details: RunDetails) -> bytes:
    """Each member's epochs as reported: everything counts from 0, as in the record."""
    members = [
        {"device": device, "name": name, "epochs": epochs} for device, name, epochs in _members(details)
    ]
    return wire.to_json({"run": details.entry.run, "script": details.entry.script, "members": members})


def _members(details: RunDetails) -> list[tuple[DeviceId, str, tuple[EpochEnd, ...]]]:
    names = member_names(details)
    return [
        (DeviceId(device), names.get(DeviceId(device), short(device)), epochs)
        for device, epochs in details.epochs.items()
    ]


def _cell(text: str) -> str:
    """A name, quoted if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
