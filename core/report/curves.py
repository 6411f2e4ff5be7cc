"""A run's plots: its metrics over steps, each with its validation, one panel per metric. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.report.points import MOST_BAD, USES, Points, RunPoints, by_use
from core.vocabulary.answers import RunDetails
from core.vocabulary.ids import DeviceId, short

MOST_PANELS = 60
MOST_CURVES = 8
MOST = 1e300
"""Largest value drawn: beyond it a plot is unreadable, and differences overflow."""
MOST_TURNS = 20
NOT_CURVES = ("lr", "learning_rate")

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot. Points are (step, value), with values up to ``MOST``. ``faint``: the line of steps
    behind a line of epochs. ``bad``: the first points whose values are NaN or beyond, and the last one."""

    name: str
    points: list[Point]
    faint: bool = False
    by_epoch: bool = False
    bad: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class Panel:
    """One plot. ``turns``: steps at which a laptop joined or left, with a description."""

    title: str
    curves: list[Curve] = field(default_factory=list)
    turns: list[tuple[float, str]] = field(default_factory=list)


def panels(details: RunDetails) -> list[Panel]:
    """At most ``MOST_PANELS`` metrics, and the use of graphics cards, or of processors where no card reports
    it. Empty if nothing was reported."""
    points, names, shown = RunPoints.of(details), member_names(details), shown_devices(details)
    found: dict[str, list[Curve]] = {}
    for key, line in points.curves.items():
        name = names.get(key.member, short(key.member))
        if key.metric not in USES:
            if key.member and key.member not in shown:
                continue
            whose = f" ({name})" if key.member and len(shown) > 1 else ""
            name = f"{'val_' if key.validation else ''}{key.metric}{whose}"
        found.setdefault(key.metric, []).extend(_curves(name, line, points.ends.get(key, Points())))
    turns = [
        (turn.step + 1, f"{names.get(turn.device, short(turn.device))} {turn.change}")
        for turn in points.turns[:MOST_TURNS]
    ]
    there = [title for title in found if any(curve.points or curve.bad for curve in found[title])]
    ordered = [title for title in by_use(there) if title not in NOT_CURVES][:MOST_PANELS]
    uses = [title for title in USES if title in there][:1] if ordered else []
    return [Panel(title, found[title][:MOST_CURVES], turns) for title in (*ordered, *uses)]


def _curves(name: str, line: Points, ends: Points) -> list[Curve]:
    """A line through the epochs' ends, if there are several, with the steps' line behind it."""
    if line.epochs:
        return [_curve(name, line, by_epoch=True)]
    whole = [_curve(name, ends, by_epoch=True)] if len(ends) > 1 else []
    return [*whole, _curve(name, line, faint=bool(whole))]


def _curve(name: str, line: Points, *, faint: bool = False, by_epoch: bool = False) -> Curve:
    """With steps counted from 1, as people do."""
    curve = Curve(name, [], faint, by_epoch)
    for step, value in zip(line.steps, line.values, strict=True):
        (curve.points if abs(value) <= MOST else curve.bad).append((step + 1, value))
    del curve.bad[MOST_BAD - 1 : -1]
    return curve


def shown_devices(details: RunDetails) -> list[DeviceId]:
    """The devices to plot: among members with the same values, as in a managed run, only the first."""
    reported = [DeviceId(device) for device in dict.fromkeys((*details.epochs, *details.steps))]
    if details.plan is None:
        return reported
    chief = details.plan.chief_without(details.left).device
    if details.plan.strategy == "managed" and chief in reported:
        return [chief]
    shown: list[DeviceId] = []
    known: list[list[dict[str, float]]] = []
    for member in details.plan.members:
        logs = [epoch.logs for epoch in details.epochs.get(member.device, ())]
        if member.device in reported and (not logs or logs not in known):
            shown.append(member.device)
            known.append(logs)
    return shown


def member_names(details: RunDetails) -> dict[DeviceId, str]:
    return {member.device: member.name for member in (details.plan.members if details.plan else ())}


def loss_first(name: str) -> tuple[bool, str, bool]:
    """Sort key for metrics: the loss first, then by name, validation after training."""
    base = name.removeprefix("val_")
    return base != "loss", base, name.startswith("val_")
