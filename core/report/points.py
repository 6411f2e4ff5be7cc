"""The reports of a run's members as points of curves: for the window's plots and the report's.

Plain arrays, as numpy is loaded only to draw them.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable
from typing import Literal, NamedTuple

from core.history.attendance import Track
from core.history.best import better
from core.vocabulary.answers import RunDetails
from core.vocabulary.events import Event, MemberEndedEpoch, MemberLeft, MemberProgressed
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import Change
from core.vocabulary.plan import Plan
from core.vocabulary.progress import EpochEnd, Progress, floats

GPU_USE, CPU_USE = "GPU use, %", "CPU use, %"
USES = (GPU_USE, CPU_USE)
"""The laptops' load, as opposed to metrics of the script."""
GRADIENT_NORM, SAMPLES_S = "gradient norm", "samples/s"
MEASURED = (GRADIENT_NORM, SAMPLES_S)
"""Tandem's own measurements, shown after the script's metrics."""
MOST_CURVES = 512
"""Limit of curves: a script may log a metric for each weight, and each takes memory while the run is
shown."""
MOST_BAD = 1000
"""Limit of NaN and infinite values that are marked one by one."""
Axis = Literal["step", "epoch", "time"]


class CurveKey(NamedTuple):
    """Identifies a curve. ``metric``: the name without ``val_``. ``member`` ``""``: the values are the same
    on every member."""

    member: DeviceId
    metric: str
    validation: bool


class Points:
    """One curve. Steps, seconds and ``places`` never fall, as drawing requires."""

    def __init__(self) -> None:
        self.steps = array("d")
        self.seconds = array("d")
        self.places = array("d")
        """Positions in epochs: 1.5 is the middle of the second one."""
        self.values = array("d")
        self.epochs = array("l")
        """Epochs counted from 0, for points that are an epoch's end; else empty."""
        self.bad: list[int] = []
        """Indices of the first NaN and infinite values, and of the last one."""

    def __len__(self) -> int:
        return len(self.values)

    def along(self, axis: Axis) -> array[float]:
        """The points' positions on an axis."""
        return {"step": self.steps, "epoch": self.places, "time": self.seconds}[axis]

    def add(
        self, step: float, second: float, value: float, epoch: int | None = None, *, place: float = 0.0
    ) -> None:
        if not math.isfinite(value):
            del self.bad[MOST_BAD - 1 :]
            self.bad.append(len(self.values))
        if self.values:
            step, second = max(step, self.steps[-1]), max(second, self.seconds[-1])
            place = max(place, self.places[-1])
        self.steps.append(step)
        self.seconds.append(second)
        self.places.append(place)
        self.values.append(value)
        if epoch is not None:
            self.epochs.append(epoch)


class TurnPoint(NamedTuple):
    """A point on a run's axis at which a laptop joined or left."""

    step: float
    second: float
    device: DeviceId
    change: Change
    place: float = 0.0
    """In epochs."""

    def along(self, axis: Axis) -> float:
        return {"step": self.step, "epoch": self.place, "time": self.second}[axis]


class RunPoints:
    """All curves of one run. Steps continue over several ``fit`` calls, and from the resumed run; seconds
    count from the first report."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.curves: dict[CurveKey, Points] = {}
        self.ends: dict[CurveKey, Points] = {}
        """Values at the ends of complete epochs, for metrics that have a curve by steps."""
        self.turns: list[TurnPoint] = []
        self.newest: tuple[float, float] | None = None
        """Step and second of the newest report that brought points."""
        self.place = 0.0
        """The position of that report, in epochs over all fits."""
        self.used_s: float | None = None
        """Second of the newest recorded reading: while the run waits, no report comes."""
        self._resumed = plan.resume.moment if plan is not None and plan.resume is not None else None
        self._managed = plan if plan is not None and plan.strategy == "managed" else None
        self._gone: set[DeviceId] = set()
        self._fits: dict[DeviceId, int] = {}
        self._epochs: dict[DeviceId, tuple[int, int, float]] = {}
        """The fit of the newest report, the epochs before that fit, and the report's position."""
        self._offsets: dict[DeviceId, int] = {}
        self._last: dict[DeviceId, int] = {}
        self._began_s: float | None = None
        self._from_steps: set[tuple[DeviceId, str]] = set()

    @classmethod
    def of(cls, details: RunDetails) -> RunPoints:
        """The curves of a run of the history."""
        points = cls(details.plan)
        points._gone.update(details.left)
        points._began_s = _first_s(details)
        for device in {**details.steps, **details.epochs}:
            reports: list[Progress | EpochEnd] = [
                *details.steps.get(device, ()),
                *details.epochs.get(device, ()),
            ]
            # An epoch's end belongs after its last step, which has the same number.
            for report in sorted(reports, key=lambda each: (each.fit, each.step, isinstance(each, EpochEnd))):
                points.add(device, report)
        points._add_laptops(details)
        return points

    def _add_laptops(self, details: RunDetails) -> None:
        """Add the laptops' load and departures, each at the run's position at that second."""
        lines = list(self.curves.values())
        track = Track([pair for line in lines for pair in zip(line.seconds, line.steps, strict=True)])
        places = Track([pair for line in lines for pair in zip(line.seconds, line.places, strict=True)])
        for device, uses in details.uses.items():
            for used in uses:
                for name, percent in ((GPU_USE, used.gpu_pct), (CPU_USE, used.cpu_pct)):
                    step = track.step(used.second)
                    self.used_s = max(self.used_s or 0.0, used.second)
                    if percent is not None and step is not None:
                        place, key = places.step(used.second) or 0.0, CurveKey(device, name, False)
                        _add(self.curves, key, step, used.second, percent, place=place)
        for turn in details.membership:
            second = turn.second or 0.0
            if (step := track.step(second)) is not None:
                self.add_turn(turn.device, turn.change, second, step, places.step(second) or 0.0)

    def on_event(self, event: Event) -> bool:
        """Add an event's report, if it has one. Returns whether it brought a point."""
        match event:
            case MemberProgressed():
                return self.add(event.device, event.progress)
            case MemberEndedEpoch():
                return self.add(event.device, event.epoch)
            case MemberLeft():
                self._gone.add(event.device)
                return False
            case _:
                return False

    def add(self, device: DeviceId, report: Progress | EpochEnd) -> bool:
        """Add one report of a member. Returns whether it brought a point."""
        # Members of a managed run all have the same logs: use the chief's, whichever member that is.
        if self._managed is not None:
            if device != self._managed.chief_without(self._gone).device:
                return False
            device = DeviceId("")
        if device not in self._fits:
            self._fits[device], self._offsets[device] = report.fit, self._done_before(report)
        elif report.fit != self._fits[device]:
            self._fits[device] = report.fit
            self._offsets[device] = self._last.get(device, -1) + 1
        if isinstance(report, Progress) and report.done is not None:
            self._offsets[device] = report.done - 1 - report.step
        step = self._offsets.get(device, 0) + report.step
        self._last[device] = max(step, self._last.get(device, 0))
        if self._began_s is None:
            self._began_s = report.at_s
        second = max(0.0, report.at_s - self._began_s)
        if isinstance(report, EpochEnd) and not report.whole:
            return False  # a few steps of an epoch are no point beside complete ones
        place = self._place(device, report)
        epoch = report.epoch if isinstance(report, EpochEnd) else None
        found = _values(report)
        for name, value in found.items():
            validation = name.startswith("val_")
            metric = name.removeprefix("val_")
            if metric in USES:
                continue
            if isinstance(report, Progress):
                self._from_steps.add((device, name))
            by_steps = isinstance(report, EpochEnd) and not validation and (device, name) in self._from_steps
            curves = self.ends if by_steps else self.curves
            _add(curves, CurveKey(device, metric, validation), step, second, value, epoch, place=place)
        if found:
            self.newest, self.place = (float(step), second), place
        return bool(found)

    def add_use(self, device: DeviceId, name: str, second: float, percent: float) -> None:
        """Add a laptop's load at a second of the run, at the run's present step."""
        if self.newest is not None and math.isfinite(percent):
            key, step = CurveKey(device, name, False), self.newest[0]
            _add(self.curves, key, step, max(0.0, second), round(percent), place=self.place)

    def add_turn(
        self,
        device: DeviceId,
        change: Change,
        second: float,
        step: float | None = None,
        place: float | None = None,
    ) -> None:
        """Mark that a laptop left or came back, by default at the run's last step. Ignores joining, and
        repeated reports of an absence, which a window gets if it opens meanwhile."""
        before = next((turn.change for turn in reversed(self.turns) if turn.device == device), "joined")
        if change in ("joined", before) or (step is None and self.newest is None):
            return
        at = step if step is not None else self.newest[0] if self.newest is not None else 0.0
        place = self.place if place is None else place
        self.turns.append(TurnPoint(at, max(0.0, second), device, change, place))

    def _place(self, device: DeviceId, report: Progress | EpochEnd) -> float:
        """The position in epochs over all fits, whether or not the script's own epoch numbers continue. While
        an epoch's number of steps is unknown, its steps are placed at its beginning."""
        fit, before, place = self._epochs.get(device, (report.fit, 0, 0.0))
        if fit != report.fit:
            before = max(0, math.ceil(place) - report.epoch)
        part = 1.0
        if isinstance(report, Progress):
            steps = report.steps_in_epoch
            part = min(1.0, (report.batch + 1) / steps) if steps else 0.0
        place = before + report.epoch + part
        self._epochs[device] = report.fit, before, place
        return place

    def _done_before(self, report: Progress | EpochEnd) -> int:
        """The steps of earlier runs of this training, to add to the first report's step."""
        moment = self._resumed
        if moment is None:
            return 0
        done = 1
        if isinstance(report, Progress) and report.steps_in_epoch and report.fit == moment.fit:
            done = (report.epoch - moment.epoch) * report.steps_in_epoch + report.batch + 1 - moment.batch
        return max(0, moment.step + max(done, 1) - 1 - report.step)


def _add(
    curves: dict[CurveKey, Points],
    key: CurveKey,
    step: float,
    second: float,
    value: float,
    epoch: int | None = None,
    *,
    place: float,
) -> None:
    if key in curves or len(curves) < MOST_CURVES:
        curves.setdefault(key, Points()).add(step, second, value, epoch, place=place)


def _values(report: Progress | EpochEnd) -> dict[str, float]:
    """A report's values by metric. For a step: means since the previous report, where the trainer reports
    them. Keras' own values are means over the epoch so far, which jump at the start of an epoch."""
    if isinstance(report, Progress):
        measured = {GRADIENT_NORM: report.grad_norm, SAMPLES_S: report.samples_s}
        known = {name: value for name, value in measured.items() if value is not None}
        logs = report.logs if report.recent is None else report.recent
        found = {**logs, **floats(report.not_finite), **known}
    else:
        found = report.values
    if report.diverged is not None and math.isfinite(found.get("loss", 0.0)):
        found["loss"] = math.nan if report.diverged.value == "NaN" else math.inf
    return found


def by_use(names: Iterable[str]) -> list[str]:
    """Metrics in reading order: the loss, the first other metric whose better direction is known, then by
    name in natural order (2 before 10). Tandem's measurements come last."""
    names = [name for name in dict.fromkeys(names) if name not in USES]
    judged = next((name for name in names if name != "loss" and better(name) and name not in MEASURED), "")

    def natural(name: str) -> list[tuple[int, int, str]]:
        parts = re.split(r"(\d{1,15})", name.casefold())
        return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]

    return sorted(names, key=lambda name: (name in MEASURED, name != "loss", name != judged, natural(name)))


def _first_s(details: RunDetails) -> float | None:
    """Time of the first report of any member."""
    steps = [reports[0].at_s for reports in details.steps.values() if reports]
    epochs = [reports[0].at_s for reports in details.epochs.values() if reports]
    return min((*steps, *epochs), default=None)
