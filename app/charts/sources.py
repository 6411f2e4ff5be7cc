"""Places laptops' readings on a live run's axis; the runs of a panel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.history.attendance import Attendance
from core.report.points import CPU_USE, GPU_USE, Axis, RunPoints
from core.vocabulary.events import Event, MemberEndedEpoch, MemberProgressed, TelemetryReported
from core.vocabulary.ids import DeviceId


class UseMeter:
    """Puts laptops' readings and departures onto a run's axis: where the run was when each arrived.

    Call ``hear`` with every event, after ``points`` has heard it. ``clock``: seconds, monotonic; a laptop's
    own time says nothing about the run's, which its chief counts.
    """

    def __init__(self, points: RunPoints, clock: Callable[[], float] = time.monotonic) -> None:
        self._points = points
        self._clock = clock
        self._began_s: float | None = None
        """The start of the run's axis, by this clock."""
        self._attendance = Attendance()

    def on_event(self, event: Event) -> bool:
        """True if it added a point."""
        turns = self._attendance.on_event(event)
        self._keep_time(event)
        if self._began_s is None:
            return False
        second = self._clock() - self._began_s
        for turn in turns:
            self._points.add_turn(turn.device, turn.change, second)
        if not isinstance(event, TelemetryReported):
            return bool(turns)
        if (use := event.reading.gpu_pct) is not None:
            self._points.add_use(event.device, GPU_USE, second, use)
        self._points.add_use(event.device, CPU_USE, second, event.reading.cpu_pct)
        return True

    def _keep_time(self, event: Event) -> None:
        """Reports are sent as soon as they are made: the least late of them dates the axis's start."""
        newest, reported = self._points.newest, isinstance(event, MemberProgressed | MemberEndedEpoch)
        if newest is None or not (reported or self._began_s is None):
            return
        second = newest[1] if reported else max(newest[1], self._points.used_s or 0.0)
        began_s = self._clock() - second
        self._began_s = began_s if self._began_s is None else min(self._began_s, began_s)


@dataclass(frozen=True, slots=True)
class Source:
    """One run. ``label`` distinguishes it from the others; ``names``: its members' display names. ``strong``:
    drawn with a thicker line."""

    label: str
    points: RunPoints
    names: dict[DeviceId, str] = field(default_factory=dict)
    strong: bool = False


def reach(sources: Sequence[Source], axis: Axis) -> tuple[float, float] | None:
    """From the first point of all runs to the last; None without points."""
    lines = [
        points.along(axis) for source in sources for points in source.points.curves.values() if len(points)
    ]
    return (min(line[0] for line in lines), max(line[-1] for line in lines)) if lines else None


def strided(seen: tuple[float, float] | None, left: float, right: float) -> tuple[float, float]:
    """The visible range of a growing axis: ``seen`` while it has room; None: no more than needed."""
    if not right > left:
        left, right = left - 0.5, right + 0.5
    span = right - left
    if seen is None:
        return left - 0.01 * span, right + 0.01 * span
    fits = seen[0] <= left <= seen[0] + 0.1 * span and right <= seen[1] <= right + 0.2 * span
    return seen if fits else (left - 0.01 * span, right + 0.1 * span)
