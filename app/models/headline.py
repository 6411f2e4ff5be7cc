"""The few large numbers of a run: loss, metric, time left, speed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

from app.models.paces import Pace, left_words
from app.words.run_words import rate_words
from core.speed.sentences import steps_words, times, too_small
from core.vocabulary import units
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan, ranks
from core.vocabulary.plausible import is_step_time, sound
from core.vocabulary.progress import Expectation, Summary
from core.vocabulary.state import Run
from core.vocabulary.text import capitalised, plain

SAME = 1.05
"""Smaller differences in speed are not noticeable."""
ALONE = "than this laptop alone"
THIS_EPOCH, LAST_EPOCH = "this epoch", "last epoch"
_HINTS = {
    THIS_EPOCH: "Over all steps of this epoch so far, as Keras prints it.",
    LAST_EPOCH: "Over all steps of the last epoch, as Keras prints it.",
}
_CURVE = "The curve ends with the mean of the newest steps alone."
_STANDS = ("away", "stopped", "connection", "silent")
"""Causes for which no step ends until the laptop is back."""


class Figure(NamedTuple):
    """``note`` goes under the value. ``kind``: *warning* if the value is not good. ``hint``: a tooltip."""

    name: str
    value: str
    note: str = ""
    kind: Literal["", "warning"] = ""
    hint: str = ""


def figures(run: Run, me: DeviceId | None, paces: Sequence[Pace] = ()) -> list[Figure]:
    """Always four, in the same places; an unknown one is a dash. ``paces``: recent ones, newest last."""
    chief = run.members[run.chief.device]
    logs = chief.progress.logs if chief.progress is not None else {}
    ends = chief.epoch.logs if chief.epoch is not None else {}
    in_epochs = chief.progress is not None and chief.progress.epochs > 0
    return [
        *_learned(logs, ends, THIS_EPOCH if in_epochs else ""),
        _left(run, paces),
        _speed(run, me, median(pace.step_s for pace in paces) if paces else None),
    ]


def results(summary: Summary, plan: Plan | None, me: DeviceId | None) -> list[Figure]:
    """The same four once the run is over, with the total time in place of the time left."""
    logs, settled = summary.last_logs, summary.settled
    step_s = settled.step_s if settled is not None else None
    rate = summary.speed_samples_s
    return [
        *_learned(logs, logs, LAST_EPOCH if summary.epochs else THIS_EPOCH if summary.part else ""),
        Figure("Time", units.clock(summary.total_s) if summary.total_s else "–", steps_words(summary)),
        _faster(
            None if plan is None else _gain(summary.expectation, plan, me, step_s),
            "" if rate is None else units.samples(rate),
            summary.expectation,
        ),
    ]


def stands(run: Run) -> bool:
    """Whether no step can end now: earlier speeds do not apply, and the time left is unknown."""
    return run.waiting is not None and any(wait.cause in _STANDS for wait in run.waiting.waits)


def speed_up(run: Run, device: DeviceId | None, step_s: float | None = None) -> float | None:
    """Speed relative to that laptop alone; None if nobody measured it."""
    progress = run.members[run.chief.device].progress
    step_s = progress.step_s if progress is not None and step_s is None else step_s
    return _gain(run.expectation, run.plan, device, step_s)


def _gain(
    known: Expectation | None, plan: Plan, device: DeviceId | None, step_s: float | None
) -> float | None:
    devices = ranks(plan)
    if known is None or device not in devices or not sound(known, plan):
        return None
    if len(known.alone_s) < 2 or step_s is None or not is_step_time(step_s):
        return None
    alone_s = min(alone_s for rank, alone_s in zip(devices, known.alone_s, strict=True) if rank == device)
    return alone_s / step_s


def brief(value: float) -> str:
    """Three digits: values that change with each step are not read more closely."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
        return f"{value:,.{digits}f}"
    return f"{value:.2e}"


def _learned(logs: dict[str, float], ends: dict[str, float], over: str) -> list[Figure]:
    """The loss and the first metric. ``over``: which steps ``logs`` are about; ``""``: unknown."""
    metrics = [name for name in (*logs, *ends) if name != "loss" and not name.startswith("val_")]
    metric = next((name for name in metrics if "rate" not in name and name != "lr"), "")
    return [
        _logged("loss", logs, ends, over),
        _logged(metric, logs, ends, over) if metric else Figure("Metric", "–"),
    ]


def _logged(name: str, logs: dict[str, float], ends: dict[str, float], over: str) -> Figure:
    value = logs.get(name, ends.get(name))
    validation = ends.get(f"val_{name}")
    note = "" if validation is None else f"validation {brief(validation)}"
    title = capitalised(plain(name, 30))
    if value is None:
        return Figure(title, "–", note)
    over = over if name in logs else LAST_EPOCH
    hint = f"{_HINTS[over]} {_CURVE}" if over else ""
    return Figure(f"{title}, {over}" if over else title, brief(value), note, hint=hint)


def _left(run: Run, paces: Sequence[Pace]) -> Figure:
    progress = run.members[run.chief.device].progress
    if progress is None:
        return Figure("Time left", "–")
    note = f"epoch {progress.epoch + 1:,} of {progress.epochs:,}" if progress.epochs > 0 else ""
    left = "" if stands(run) else left_words(progress, paces)
    return Figure("Time left", left or "–", note)


def _speed(run: Run, me: DeviceId | None, step_s: float | None) -> Figure:
    progress = run.members[run.chief.device].progress
    if progress is None:
        return Figure("Speed", "–")
    if stands(run):
        return Figure("Speed", "0", "no step can end now", "warning")
    return _faster(speed_up(run, me, step_s), rate_words(progress), run.expectation)


def _faster(gain: float | None, rate: str, known: Expectation | None) -> Figure:
    """``rate``: shown if the gain is unknown, or says nothing about larger models."""
    value, _, unit = rate.partition(" ")
    if gain is None:
        return Figure("Speed", value or "–", unit)
    if gain < SAME and value and known is not None and too_small(known):
        return Figure("Speed", value, f"{unit}; steps too small")
    if gain >= SAME:
        return Figure("Speed", f"{times(gain)}×", "as fast as this laptop alone")
    if gain > 1 / SAME:
        return Figure("Speed", "No faster", ALONE, "warning")
    return Figure("Speed", f"{times(1 / gain)}× slower", ALONE, "warning")
