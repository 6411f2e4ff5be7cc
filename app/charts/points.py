"""What a run's members reported, as points of curves. Plain arrays: numpy is loaded only to draw them."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from app.models.laptop_rows import gpu_use
from core.history.attendance import Attendance, Track
from core.report.curves import CPU_USE, GPU_USE
from core.vocabulary.answers import RunDetails
from core.vocabulary.events import Event, MemberEndedEpoch, MemberProgressed, TelemetryReported
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import Change
from core.vocabulary.plan import Plan
from core.vocabulary.progress import EpochEnd, Progress

USES = (GPU_USE, CPU_USE)
"""What laptops were busy with meanwhile: no metrics of the script."""
MOST_CURVES = 64
"""A script may log a name for each layer; more lines than this tell nobody anything."""


class CurveKey(NamedTuple):
    """``metric`` is the name without ``val_``; ``""`` as member: every member says the same."""

    member: DeviceId
    metric: str
    validation: bool


class Points:
    """One curve. ``steps`` and ``seconds`` never fall, as a drawing needs it."""

    def __init__(self) -> None:
        self.steps = array("d")
        self.seconds = array("d")
        self.values = array("d")
        self.epochs = array("l")
        """Counted from 0, of points that are an epoch's; else empty."""
        self.first_bad: int | None = None
        """Index of the first value that is no number."""

    def __len__(self) -> int:
        return len(self.values)

    def add(self, step: float, second: float, value: float, epoch: int | None = None) -> None:
        if self.first_bad is None and not math.isfinite(value):
            self.first_bad = len(self.values)
        if self.values:
            step, second = max(step, self.steps[-1]), max(second, self.seconds[-1])
        self.steps.append(step)
        self.seconds.append(second)
        self.values.append(value)
        if epoch is not None:
            self.epochs.append(epoch)


class TurnPoint(NamedTuple):
    """Where on a run's axis a laptop came or went."""

    step: float
    second: float
    device: DeviceId
    change: Change


class RunPoints:
    """All curves of one run. Steps count on over several ``fit`` calls, and from the run that is resumed;
    seconds from the first report."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.curves: dict[CurveKey, Points] = {}
        self.turns: list[TurnPoint] = []
        self.newest: tuple[float, float] | None = None
        """Step and second of the newest report that brought points."""
        self._resumed = plan.resume.moment if plan is not None and plan.resume is not None else None
        self._only = plan.chief.device if plan is not None and plan.strategy == "managed" else None
        self._fits: dict[DeviceId, int] = {}
        self._offsets: dict[DeviceId, int] = {}
        self._last: dict[DeviceId, int] = {}
        self._began_s: dict[DeviceId, float] = {}
        self._from_steps: set[tuple[DeviceId, str]] = set()

    @classmethod
    def of(cls, details: RunDetails) -> RunPoints:
        """The curves of a run of the history."""
        points = cls(details.plan)
        for device in {**details.steps, **details.epochs}:
            reports: list[Progress | EpochEnd] = [
                *details.steps.get(device, ()),
                *details.epochs.get(device, ()),
            ]
            # An epoch's end belongs behind its last step, which has the same number.
            for report in sorted(reports, key=lambda each: (each.fit, each.step, isinstance(each, EpochEnd))):
                points.add(device, report)
        points._add_laptops(details)
        return points

    def _add_laptops(self, details: RunDetails) -> None:
        """How busy they were and who went, each where the run was at that second."""
        track = Track(
            [pair for line in self.curves.values() for pair in zip(line.seconds, line.steps, strict=True)]
        )
        for device, uses in details.uses.items():
            for used in uses:
                for name, percent in ((GPU_USE, used.gpu_pct), (CPU_USE, used.cpu_pct)):
                    step = track.step(used.second)
                    if percent is not None and step is not None:
                        self._add(CurveKey(device, name, False), step, used.second, percent)
        for turn in details.membership:
            second = turn.second or 0.0
            self.add_turn(turn.device, turn.change, second, track.step(second))

    def hear(self, event: Event) -> bool:
        """True if the event brought a point."""
        match event:
            case MemberProgressed():
                return self.add(event.device, event.progress)
            case MemberEndedEpoch():
                return self.add(event.device, event.epoch)
            case _:
                return False

    def add(self, device: DeviceId, report: Progress | EpochEnd) -> bool:
        """One report of a member; True if it brought a point."""
        # Members of a managed run all have the same logs: the chief's are the run's.
        if self._only is not None and device != self._only:
            return False
        if device not in self._fits:
            self._fits[device], self._offsets[device] = report.fit, self._done_before(report)
        elif report.fit != self._fits[device]:
            self._fits[device] = report.fit
            self._offsets[device] = self._last.get(device, -1) + 1
        if isinstance(report, Progress) and report.done is not None:
            self._offsets[device] = report.done - 1 - report.step
        step = self._offsets.get(device, 0) + report.step
        self._last[device] = max(step, self._last.get(device, 0))
        second = report.at_s - self._began_s.setdefault(device, report.at_s)
        if isinstance(report, EpochEnd) and not report.whole:
            return False  # a few steps of an epoch are no point beside whole ones
        for name, value in report.logs.items():
            validation = name.startswith("val_")
            metric = name.removeprefix("val_")
            if metric in USES:
                continue
            if isinstance(report, Progress):
                self._from_steps.add((device, name))
            elif not validation and (device, name) in self._from_steps:
                continue
            key = CurveKey(DeviceId("") if self._only else device, metric, validation)
            self._add(key, step, second, value, report.epoch if isinstance(report, EpochEnd) else None)
        if report.logs:
            self.newest = float(step), second
        return bool(report.logs)

    def add_use(self, device: DeviceId, name: str, second: float, percent: float) -> None:
        """How busy a laptop was at that second of the run; over steps it stands where the run was."""
        if self.newest is not None and math.isfinite(percent):
            self._add(CurveKey(device, name, False), self.newest[0], max(0.0, second), round(percent))

    def add_turn(self, device: DeviceId, change: Change, second: float, step: float | None = None) -> None:
        """Without ``step`` it stands where the run was last. That somebody joined is no news in a plot; that
        somebody is still away neither, as a window hears that opens meanwhile."""
        before = next((turn.change for turn in reversed(self.turns) if turn.device == device), "joined")
        if change in ("joined", before) or (step is None and self.newest is None):
            return
        at = step if step is not None else self.newest[0] if self.newest is not None else 0.0
        self.turns.append(TurnPoint(at, max(0.0, second), device, change))

    @property
    def metrics(self) -> list[str]:
        """The loss first, then as the script gave them."""
        names = dict.fromkeys(key.metric for key in self.curves if key.metric not in USES)
        return sorted(names, key=lambda name: name != "loss")

    def _done_before(self, report: Progress | EpochEnd) -> int:
        """What makes the first report's step one of the whole training, where an earlier run began it."""
        moment = self._resumed
        if moment is None:
            return 0
        done = 1
        if isinstance(report, Progress) and report.steps_in_epoch and report.fit == moment.fit:
            done = (report.epoch - moment.epoch) * report.steps_in_epoch + report.batch + 1 - moment.batch
        return max(0, moment.step + max(done, 1) - 1 - report.step)

    def _add(self, key: CurveKey, step: float, second: float, value: float, epoch: int | None = None) -> None:
        points = self.curves.get(key)
        if points is None:
            if len(self.curves) >= MOST_CURVES:
                return
            points = self.curves[key] = Points()
        points.add(step, second, value, epoch)


class UseMeter:
    """Puts laptops' readings onto a run's axis, and who of them went: where the run was when that came.

    ``hear`` every event, after ``points`` has heard it. ``clock``: seconds, monotonic; a laptop's own time
    says nothing about the run's, which its chief counts."""

    def __init__(self, points: RunPoints, clock: Callable[[], float] = time.monotonic) -> None:
        self._points = points
        self._clock = clock
        self._began_s: float | None = None
        """When the run's axis began, by this clock."""
        self._attendance = Attendance()

    def hear(self, event: Event) -> bool:
        """True if it brought a point."""
        newest, turns = self._points.newest, self._attendance.hear(event)
        if self._began_s is None and newest is not None:
            self._began_s = self._clock() - newest[1]
        if self._began_s is None:
            return False
        second = self._clock() - self._began_s
        for turn in turns:
            self._points.add_turn(turn.device, turn.change, second)
        if not isinstance(event, TelemetryReported):
            return bool(turns)
        if (use := gpu_use(event.reading)) is not None:
            self._points.add_use(event.device, GPU_USE, second, use)
        self._points.add_use(event.device, CPU_USE, second, event.reading.cpu_pct)
        return True


@dataclass(frozen=True, slots=True)
class Source:
    """One run. ``label`` tells it from the others; ``names``: what to call its members."""

    label: str
    points: RunPoints
    names: dict[DeviceId, str] = field(default_factory=dict)
