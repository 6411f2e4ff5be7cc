"""What a plot says in numbers: where its lines end, which epoch was best, what stands at one place. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, log10

import numpy as np

from app import theme
from app.charts.curve import Curve, Look
from app.charts.marks import Cursor, Mark, TurnMark
from app.charts.points import RunPoints
from app.run_words import duration
from core.history.best import better
from core.vocabulary.ids import DeviceId, short

MOST_ENDS = 6
"""More numbers at the lines' ends would lie over each other."""
MOST_TURNS = 200


def brief(value: float) -> str:
    """``0.1792``, ``12.35``, ``1.2e-05``: as much as one reads at a glance."""
    return f"{value:.4g}" if isfinite(value) else "NaN" if value != value else "infinite"


def end_marks(curves: Sequence[Curve], look: Look) -> list[Mark]:
    """The last value of each line, smoothed where the line is."""
    marks = []
    for curve in curves[:MOST_ENDS]:
        last = curve.last
        if last is not None and (y := drawn_at(last[1], look)) is not None:
            marks.append(Mark(last[0], y, f"{last[1]:.3g}", curve.colour))
    return marks


def best_mark(metric: str, curves: Sequence[Curve], look: Look) -> Mark | None:
    """Of the one curve of a validation: its best epoch. Of several runs none is marked."""
    found = [curve for curve in curves if curve.dashed]
    if len(found) != 1 or len(found[0].points.epochs) < max(2, len(found[0].raw)):
        return None
    curve = found[0]
    which, values = better(metric), curve.raw.y
    if not which or not np.isfinite(values).any():
        return None
    index = int(np.nanargmin(values) if which == "lower" else np.nanargmax(values))
    if (y := drawn_at(float(values[index]), look)) is None:
        return None
    words = f"best {brief(curve.points.values[index])}, epoch {curve.points.epochs[index] + 1}"
    return Mark(float(curve.raw.x[index]), y, words, curve.colour)


def turn_marks(points: RunPoints, names: Mapping[DeviceId, str], look: Look) -> list[TurnMark]:
    """Where a laptop went or came: ``Ben away``."""
    shades = theme.colours()
    colours = {"away": shades.warning, "back": shades.good, "left": shades.bad}
    return [
        TurnMark(
            turn.step if look.axis == "step" else turn.second,
            f"{names.get(turn.device) or short(turn.device)} {turn.change}",
            colours[turn.change],
        )
        for turn in points.turns[:MOST_TURNS]
        if turn.change in colours
    ]


def cursor_at(x: float, curves: Sequence[Curve], look: Look) -> Cursor | None:
    """Each curve's point nearest to ``x``; None where there is none."""
    marks, head, place = [], "", x
    for curve in curves:
        index = curve.at(x)
        if index is None:
            continue
        if not head:
            step, second = curve.points.steps[index], curve.points.seconds[index]
            head, place = f"step {step:,.0f} · {duration(min(second, 1e9))}", float(curve.raw.x[index])
        value = curve.points.values[index]
        y = drawn_at(value, look)
        words = f"{curve.name} {brief(value)}"
        if curve.smooth is not None and index < len(curve.smooth):
            words += f", smoothed {brief(float(curve.smooth.y[index]))}"
        # What cannot be drawn is said all the same; its mark lies outside of what is seen.
        marks.append(
            Mark(float(curve.raw.x[index]), y if y is not None else float("nan"), words, curve.colour)
        )
    return Cursor(place, head, tuple(marks)) if marks else None


def drawn_at(value: float, look: Look) -> float | None:
    """Where a value is drawn; None where it is not."""
    if not isfinite(value):
        return None
    if not look.log:
        return value
    return log10(value) if value > 0 else None
