"""A plot's numbers: line ends, the best epoch, the values at one place. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, log10

import numpy as np

from app import theme
from app.charts.curve import Look, PlotCurve
from app.charts.marks import BadMark, Cursor, Mark, TurnMark
from core.history.best import better
from core.report.points import MEASURED, Axis, RunPoints
from core.vocabulary import units
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.progress import not_finite

MOST_ENDS = 6
"""With more lines, only validation's last values are shown: readers comparing runs look at these."""
MOST_TURNS = 200


def brief(value: float, digits: int = 4) -> str:
    """``0.1792``, ``12.35``, ``28,510``, ``1.2e-05``: short enough to read at a glance.

    ``digits``: significant ones, where the thousands are not written out.
    """
    if not isfinite(value):
        return not_finite(value)
    words = f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1e3 <= abs(float(words)) < 1e6 else words


def end_marks(curves: Sequence[PlotCurve], look: Look) -> list[Mark]:
    """Each line's last value, smoothed if the line is."""
    marks = []
    for curve in said_at_end(curves):
        last = curve.last
        if last is not None and (y := drawn_at(last[1], look)) is not None:
            marks.append(Mark(last[0], y, brief(last[1], digits=3), curve.colour))
    return marks


def said_at_end(curves: Sequence[PlotCurve]) -> list[PlotCurve]:
    shown = [curve for curve in curves if not curve.hidden]
    dashed = [curve for curve in shown if curve.dashed]
    return dashed if dashed and len(shown) > MOST_ENDS else shown


def best_mark(metric: str, curves: Sequence[PlotCurve], look: Look) -> Mark | None:
    """The best epoch of a single validation curve. With several runs none is marked."""
    found = [curve for curve in curves if curve.dashed and not curve.hidden and curve.base is None]
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


def bad_marks(curves: Sequence[PlotCurve], axis: Axis) -> list[BadMark]:
    """Each non-finite value."""
    return [
        BadMark(curve.points.along(axis)[index], curve.points.values[index], curve.colour)
        for curve in curves
        if not curve.hidden
        for index in curve.points.bad
    ]


def bad_words(metric: str, curves: Sequence[PlotCurve]) -> str:
    """Where curves were or became non-finite; empty if nowhere."""
    said = []
    for curve in curves:
        if curve.points.bad and not curve.hidden and metric not in MEASURED:
            values, steps = curve.points.values, curve.points.steps
            sound = np.flatnonzero(np.isfinite(values))
            since = int(sound[-1]) + 1 if len(sound) else 0
            lasts = since < len(values)
            at = since if lasts else curve.points.bad[0]
            word, step = brief(values[at]), int(steps[at])
            place = f"is {word} from step {step:,} on" if lasts else f"was {word} at step {step:,}"
            said.append(f"{curve.name} {place}")
    return "; ".join(said)


def turn_marks(points: RunPoints, names: Mapping[DeviceId, str], look: Look) -> list[TurnMark]:
    """Where a laptop left or returned: ``Ben away``; and where a loss became NaN or infinite."""
    shades = theme.colours()
    colours = {"away": shades.warning, "back": shades.good, "lost": shades.bad, "left": shades.bad}
    lost = [
        TurnMark(line.along(look.axis)[line.bad[0]], brief(line.values[line.bad[0]]), shades.bad)
        for key, line in points.curves.items()
        if key.metric == "loss" and not key.validation and line.bad
    ]
    return lost + [
        TurnMark(
            turn.along(look.axis),
            f"{names.get(turn.device) or short(turn.device)} {turn.change}",
            colours[turn.change],
        )
        for turn in points.turns[:MOST_TURNS]
        if turn.change in colours
    ]


def cursor_at(x: float, curves: Sequence[PlotCurve], look: Look, near: float = np.inf) -> Cursor | None:
    """For each curve that reaches ``x`` within ``near``, its nearest point; None if none does."""
    marks, head, place = [], "", x
    for curve in curves:
        index = None if curve.hidden else curve.at(x, near)
        if index is None or (curve.base is not None and np.isnan(curve.raw.y[index])):
            continue
        if not head:
            points, at = curve.points, float(curve.raw.x[index])
            head = f"step {points.steps[index]:,.0f} · {units.clock(min(points.seconds[index], 1e9))}"
            head, place = (f"epoch {at:,.2f} · {head}" if look.axis == "epoch" else head), at
        value = curve.points.values[index] if curve.base is None else float(curve.raw.y[index])
        y = drawn_at(value, look)
        words = f"{curve.name} {brief(value)}" if curve.base is None else f"{curve.name} {value:+.4g}"
        if curve.smooth is not None and index < len(curve.smooth):
            words += f", smoothed {brief(float(curve.smooth.y[index]))}"
        # A value that cannot be drawn is still listed; its mark lies outside the visible area.
        marks.append(
            Mark(float(curve.raw.x[index]), y if y is not None else float("nan"), words, curve.colour)
        )
    return Cursor(place, head, tuple(marks)) if marks else None


def drawn_at(value: float, look: Look) -> float | None:
    """The drawn position of a value; None if it is not drawn."""
    if not isfinite(value):
        return None
    if not look.log:
        return value
    return log10(value) if value > 0 else None
