"""What a run's plot shows: its metrics over steps, each with its validation, one panel a metric. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.history.attendance import Track
from core.vocabulary.answers import RunDetails
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.laptops import LaptopUsed
from core.vocabulary.progress import EpochEnd, Progress

MOST_PANELS = 4
MOST_CURVES = 8
MOST = 1e300
"""Of a value; beyond it nobody reads a plot, and differences are no numbers any more."""
MOST_TURNS = 20
GPU_USE, CPU_USE = "GPU use, %", "CPU use, %"
NOT_CURVES = ("lr", "learning_rate")

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Curve:
    """``faint``: steps behind the epochs' line. Points are (step, value); values up to ``MOST``."""

    name: str
    points: Points
    faint: bool = False


@dataclass(slots=True)
class Panel:
    """``turns``: steps at which a laptop came or went, in words."""

    title: str
    curves: list[Curve] = field(default_factory=list)
    turns: list[tuple[float, str]] = field(default_factory=list)


def panels(details: RunDetails) -> list[Panel]:
    """The loss first; at most ``MOST_PANELS``. Empty where nothing was reported."""
    found: dict[str, Panel] = {}
    devices = shown_devices(details)
    names = member_names(details)
    for device in devices:
        of = f" ({names.get(device, short(device))})" if len(devices) > 1 else ""
        steps, epochs = details.steps.get(device, ()), details.epochs.get(device, ())
        starts = fit_starts(steps, epochs)
        by_epoch, by_step = _of_epochs(epochs, starts), _of_steps(steps, starts)
        for name in sorted({*by_epoch, *by_step}, key=loss_first):
            title = name.removeprefix("val_")
            panel = found.setdefault(title, Panel(title))
            line = by_epoch.get(name, [])
            if len(line) > 1 or name not in by_step:
                panel.curves.append(Curve(name + of, line))
            if name in by_step:
                panel.curves.append(Curve(name + of, by_step[name], faint=len(line) > 1))
    kept = sorted(found.values(), key=lambda panel: loss_first(panel.title))[:MOST_PANELS]
    for panel in kept:
        del panel.curves[MOST_CURVES:]
    kept = [panel for panel in kept if any(curve.points for curve in panel.curves)]
    return [*kept, *_with_laptops(details, kept)]


def _with_laptops(details: RunDetails, metrics: Sequence[Panel]) -> list[Panel]:
    """Marks in ``metrics`` who came and went; how busy the cards were, and the processors where none says."""
    device = next(iter(shown_devices(details)), None)
    if device is None or not metrics:
        return []
    steps, epochs = details.steps.get(device, ()), details.epochs.get(device, ())
    starts = fit_starts(steps, epochs)
    told: list[Progress | EpochEnd] = [*steps, *epochs]
    reports = sorted((each.at_s, float(starts[each.fit] + each.step + 1)) for each in told)
    track = Track([(at_s - reports[0][0], step) for at_s, step in reports])
    names = member_names(details)
    turns = [
        (step, f"{names.get(turn.device, short(turn.device))} {turn.change}")
        for turn in details.membership
        if turn.change != "joined" and (step := track.step(turn.second or 0.0)) is not None
    ][:MOST_TURNS]
    for panel in metrics:
        panel.turns = turns
    for title, read in ((GPU_USE, _gpu_pct), (CPU_USE, _cpu_pct)):
        curves = []
        for laptop, uses in details.uses.items():
            points = [
                (step, percent)
                for used in uses
                if (percent := read(used)) is not None and (step := track.step(used.second)) is not None
            ]
            if points:
                curves.append(Curve(names.get(DeviceId(laptop), short(laptop)), points))
        if curves:
            return [Panel(title, curves[:MOST_CURVES], turns)]
    return []


def _gpu_pct(used: LaptopUsed) -> float | None:
    return used.gpu_pct


def _cpu_pct(used: LaptopUsed) -> float | None:
    return used.cpu_pct


def shown_devices(details: RunDetails) -> list[DeviceId]:
    """Those whose numbers are shown: of members that have the same, as in a managed run, the first."""
    reported = [DeviceId(device) for device in dict.fromkeys((*details.epochs, *details.steps))]
    if details.plan is None:
        return reported
    if details.plan.strategy == "managed" and details.plan.chief.device in reported:
        return [details.plan.chief.device]
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
    """The order in which metrics are shown: the loss, then by name, validation after training."""
    base = name.removeprefix("val_")
    return base != "loss", base, name.startswith("val_")


def fit_starts(steps: Sequence[Progress], epochs: Sequence[EpochEnd]) -> dict[int, int]:
    """The steps done before each ``fit`` of a script began."""
    last: dict[int, int] = {}
    ends = [(step.fit, step.step) for step in steps] + [(epoch.fit, epoch.step) for epoch in epochs]
    for fit, step in ends:
        last[fit] = max(last.get(fit, 0), step + 1)
    starts, before = {}, 0
    for fit in sorted(last):
        starts[fit] = before
        before += last[fit]
    return starts


def _of_steps(steps: Sequence[Progress], starts: Mapping[int, int]) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for progress in steps:
        _add(found, starts[progress.fit] + progress.step + 1, progress.logs)
    return found


def _of_epochs(epochs: Sequence[EpochEnd], starts: Mapping[int, int]) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for epoch in epochs:
        if epoch.whole:  # what a few steps came to is no point beside whole epochs
            _add(found, starts[epoch.fit] + epoch.step + 1, epoch.logs)
    return found


def _add(found: dict[str, Points], step: int, logs: Mapping[str, float]) -> None:
    for name, value in logs.items():
        if abs(value) <= MOST and name not in NOT_CURVES:
            found.setdefault(name, []).append((float(step), value))
