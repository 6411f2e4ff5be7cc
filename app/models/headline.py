"""The few numbers of a run that are read from across the room: loss, metric, time left, speed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

from app.paces import Pace, left_words
from app.run_words import rate_words
from core.speed.sentences import times
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import ranks
from core.vocabulary.plausible import a_step, sound
from core.vocabulary.state import Run
from core.vocabulary.text import plain

SAME = 1.05
"""Less than that much faster or slower is no difference that one would notice."""
ALONE = "than this laptop alone"


class Figure(NamedTuple):
    """``note`` stands under the value. ``kind``: *warning* where it is not as one would wish."""

    name: str
    value: str
    note: str = ""
    kind: Literal["", "warning"] = ""


def figures(run: Run, me: DeviceId | None, paces: Sequence[Pace] = ()) -> list[Figure]:
    """Always four, in the same places; what is not known is a dash. ``paces``: of late, the newest last."""
    chief = run.members[run.plan.chief.device]
    logs = chief.progress.logs if chief.progress is not None else {}
    ends = chief.epoch.logs if chief.epoch is not None else {}
    metrics = [name for name in (*logs, *ends) if name != "loss" and not name.startswith("val_")]
    metric = next((name for name in metrics if "rate" not in name and name != "lr"), "")
    return [
        _logged("loss", logs, ends),
        _logged(metric, logs, ends) if metric else Figure("Metric", "–"),
        _left(run, paces),
        _speed(run, me, median(pace.step_s for pace in paces) if paces else None),
    ]


def speed_up(run: Run, device: DeviceId | None, step_s: float | None = None) -> float | None:
    """How many times as fast as that laptop alone; None where nobody measured it."""
    known, progress = run.expectation, run.members[run.plan.chief.device].progress
    devices = ranks(run.plan)
    if known is None or progress is None or device not in devices or not sound(known, run.plan):
        return None
    step_s = progress.step_s if step_s is None else step_s
    if len(known.alone_s) < 2 or step_s is None or not a_step(step_s):
        return None
    alone_s = min(alone_s for rank, alone_s in zip(devices, known.alone_s, strict=True) if rank == device)
    return alone_s / step_s


def brief(value: float) -> str:
    """Three digits: what changes with each step is not read closer."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
        return f"{value:,.{digits}f}"
    return f"{value:.2e}"


def _logged(name: str, logs: dict[str, float], ends: dict[str, float]) -> Figure:
    value = logs.get(name, ends.get(name))
    validation = ends.get(f"val_{name}")
    note = "" if validation is None else f"validation {brief(validation)}"
    shown = plain(name, 30)
    return Figure(shown[:1].upper() + shown[1:], "–" if value is None else brief(value), note)


def _left(run: Run, paces: Sequence[Pace]) -> Figure:
    progress = run.members[run.plan.chief.device].progress
    if progress is None:
        return Figure("Time left", "–")
    note = f"epoch {progress.epoch + 1:,} of {progress.epochs:,}" if progress.epochs > 0 else ""
    return Figure("Time left", left_words(progress, paces) or "–", note)


def _speed(run: Run, me: DeviceId | None, step_s: float | None) -> Figure:
    progress = run.members[run.plan.chief.device].progress
    if progress is None:
        return Figure("Speed", "–")
    gain = speed_up(run, me, step_s)
    if gain is None:
        value, _, unit = rate_words(progress).partition(" ")
        return Figure("Speed", value or "–", unit)
    if gain >= SAME:
        return Figure("Speed", f"{times(gain)}×", "as fast as this laptop alone")
    if gain > 1 / SAME:
        return Figure("Speed", "No faster", ALONE, "warning")
    return Figure("Speed", f"{times(1 / gain)}× slower", ALONE, "warning")
