"""One folder per run: its plan, summary, metrics and events as JSON, ``logs/``, ``outputs/``.

Blocks: call only on the writer's thread, in order. Never raises disk errors: the training goes on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from math import isfinite
from pathlib import Path

from msgspec.structs import replace

from core.history.attendance import Attendance, MemberChange
from core.history.best import with_epoch
from core.history.events_file import EventsFile
from core.history.history import History, labelled
from core.history.metrics_file import MetricsFile, Report, Thinned
from core.history.read import (
    came_before,
    place_of,
    read_entry,
    read_later,
    read_later_membership,
    read_later_uses,
    read_membership,
    read_metrics,
    reported_s,
    taken_s,
)
from core.home.private_file import write_atomically
from core.runtime.bounded_file import BoundedFile
from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.events import MirroredEvent
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.laptops import LaptopUsed, MembershipChanged
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.phases import ended, is_followed
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.readings import Reading
from core.vocabulary.run_folder import EVENTS, LOGS, METRICS, PLAN, PROJECT, TANDEM_LOG, log_name

_UNLIKE_CLOCKS_S = 86_400.0
"""Every member's record uses the starter's start time, unless the two clocks differ by more than this."""

_LOG_BYTES = 4 << 20
"""Limit of one task's recorded output, and of its older part: the task's own laptop has more."""
_OPEN_LOGS = 16
_MOST_LOSSES = 48


class RunRecord:
    """This node's record of one run. ``on_trouble`` is called at most once, on the writer's thread."""

    def __init__(
        self,
        folder: Path,
        entry: RunEntry,
        me: DeviceId,
        history: History,
        on_trouble: Callable[[Problem], None],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.entry = entry
        self._me = me
        self._history = history
        self._on_trouble = on_trouble
        self._wall_clock = wall_clock
        self._metrics = MetricsFile(folder / METRICS)
        self._events = EventsFile(folder / EVENTS)
        self._logs: dict[str, BoundedFile] = {}
        """The open logs, the most recently written last."""
        self._left_out: set[str] = set()
        """Files already reported as incomplete."""
        self._is_reported = False
        self._planned: Plan | None = None
        self._left: set[DeviceId] = set()
        self._losses = Thinned[float](_MOST_LOSSES)
        self._attendance = Attendance()
        self._first_s: float | None = None
        """Time of the first report, by its sender's clock: the origin of the run's axis."""
        self._skew_s: float | None = None
        """How far this node's clock is ahead of that one; None before this run's first report."""

    def add(self, event: MirroredEvent) -> None:
        """Record an event."""
        for turn in self._attendance.on_event(event):
            self._try(lambda turn=turn: self._turn(turn))  # type: ignore[misc]
        match event:
            case ev.RunPlanned(plan=plan):
                self._try(lambda: self._plan(plan))
            case ev.MemberProgressed() | ev.MemberEndedEpoch() as metric:
                self._keep_time(metric)
                self._try(lambda: self._metrics.add(metric))
                if self._planned and metric.device == self._planned.chief_without(self._left).device:
                    self._learn(metric)
            case ev.MemberLogged():
                self._log(event)
            case ev.MemberLeft(device=device):
                self._left.add(device)
                self._try(lambda: self._event(event))
            case ev.MemberMeasured(expectation=expectation):
                self._try(lambda: self._event(event))
                # Write it at once, so that the measurement outlasts any failure of the run.
                summary = replace(self.entry.summary, expectation=expectation)
                self.entry = replace(self.entry, summary=summary)
                self._try(self._summary)
            case ev.RunSummarised(summary=summary):
                self.entry = replace(self.entry, summary=summary)
                began_s = summary.started_s
                if began_s is not None and abs(began_s - self.entry.started_s) < _UNLIKE_CLOCKS_S:
                    self.entry = replace(self.entry, started_s=began_s)
            case ev.RunPhaseChanged(phase=phase):
                self._try(lambda: self._event(event))
                self.entry = replace(self.entry, phase=phase)
                if ended(phase):
                    took_s = self.entry.summary.total_s
                    if took_s is None:  # the starter was lost
                        took_s = taken_s(self.entry, self._planned, self._wall_clock())
                    self.entry = replace(self.entry, duration_s=took_s, losses=self._losses.items)
                self._try(self._summary)
            case _:
                self._try(lambda: self._event(event))

    def note_use(self, device: DeviceId, reading: Reading) -> None:
        """Record a laptop's load. Drops it before the run's first report, where the axis begins."""
        second = self._second(self._wall_clock())
        if second is not None and device in self.entry.device_ids:
            used = LaptopUsed(
                device=device,
                second=round(second, 2),
                cpu_pct=round(reading.cpu_pct, 1),
                gpu_pct=None if reading.gpu_pct is None else round(reading.gpu_pct, 1),
            )
            self._use(used)

    def go_on_from(self, folder: Path, moment: Moment, *, back: bool = False) -> None:
        """Copy the metrics of the resumed run, up to its checkpoint: those recorded here, then those that
        other laptops sent. If this run follows it automatically, also copy who left and came. ``back``: this
        run has laptops that were absent at its end, as after a crash here."""
        before = read_entry(folder)
        goes_on = back or (before is not None and is_followed(before.phase))
        turns = read_membership(folder) if goes_on else []
        for turn in turns:
            self._copy(turn)
        beyond, last, last_s, used_s = False, (0, 0, 0), 0.0, 0.0
        for event in read_metrics(folder):
            if isinstance(event, ev.MemberProgressed) and event.progress.done is None:
                break  # recorded by an older version, which did not count over a whole training
            if isinstance(event, LaptopUsed):
                if not beyond:
                    self._use(event)
                    used_s = event.second
            elif came_before(event, moment):
                self.add(event)
                last, last_s = max(last, place_of(event)), reported_s(event)
            else:
                beyond = beyond or isinstance(event, ev.MemberProgressed)
        for event in read_later(folder):
            if last < place_of(event) and came_before(event, moment):
                self.add(event)
                last_s = reported_s(event)
        if (first_s := self._first_s) is not None:
            for used in read_later_uses(folder):
                placed = replace(used, second=round(used.second - first_s, 2))
                if used_s < placed.second <= last_s - first_s:
                    self._use(placed)
        if goes_on and first_s is not None:
            known = Counter((turn.device, turn.change) for turn in turns)
            for turn in read_later_membership(folder):
                known[turn.device, turn.change] -= 1
                # The other laptop also recorded the beginning: copy its changes from the first that is new.
                if min(known.values()) < 0:
                    second = None if turn.second is None else turn.at_s - first_s
                    self._copy(replace(turn, second=second))
        self._skew_s = None  # only this run's own reports determine it

    def _use(self, used: LaptopUsed) -> None:
        self._try(lambda: self._metrics.add(used))

    def _copy(self, turn: MembershipChanged) -> None:
        self._try(lambda: self._event(turn))
        self._attendance.recall(turn.device, turn.change)

    def keep_project(self, project: Manifest) -> None:
        """Record the files that the run begins with: a resumption compares its code with them."""
        self._try(lambda: self._store(PROJECT, project))

    def label(self, name: str | None, note: str | None) -> None:
        """As ``History.label``, for the run under way, whose next phase would otherwise write the old
        name."""
        self.entry = labelled(self.entry, name, note)
        self._try(self._summary)

    def close(self) -> None:
        self._try(self._metrics.close)
        self._try(self._events.close)
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _learn(self, report: Report) -> None:
        """Update the entry in the list of runs."""
        if isinstance(report, ev.MemberEndedEpoch):
            self.entry = replace(self.entry, best=with_epoch(self.entry.best, report.epoch))
            return
        logs = report.progress.logs if report.progress.recent is None else report.progress.recent
        if isfinite(loss := logs.get("loss", float("nan"))):
            self._losses.add(float(f"{loss:.4g}"))

    def _store(self, name: str, what: Manifest | Plan) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self.folder / name, wire.to_json(what))

    def _plan(self, plan: Plan) -> None:
        self._planned = plan
        self.entry = replace(
            self.entry,
            devices=tuple(member.name for member in plan.members),
            device_ids=tuple(member.device for member in plan.members),
        )
        self._store(PLAN, plan)
        self._summary()

    def _summary(self) -> None:
        self._history.put(self.entry)  # which retries later if the disk fails

    def _turn(self, turn: MemberChange) -> None:
        at_s = self._wall_clock()
        self._event(
            MembershipChanged(
                device=turn.device,
                change=turn.change,
                at_s=at_s,
                second=self._second(at_s),
                words=turn.words,
            )
        )

    def _keep_time(self, report: Report) -> None:
        at_s = reported_s(report)
        if self._first_s is None:
            self._first_s = at_s
        if self._skew_s is None:
            self._skew_s = self._wall_clock() - at_s

    def _second(self, at_s: float) -> float | None:
        """The position of a time of this node's clock on the run's axis; None before its first report."""
        if self._first_s is None or self._skew_s is None:
            return None
        return at_s - self._skew_s - self._first_s

    def _event(self, event: MirroredEvent | MembershipChanged) -> None:
        self._events.add(wire.to_json(event))
        if self._events.shortened:
            self._say_left_out(EVENTS, "Too many events for a record: the first and the newest are here.")

    def _log(self, event: ev.MemberLogged) -> None:
        lines = event.lines
        if lines.stream == "tandem":
            name = TANDEM_LOG
        elif event.device == self._me:
            return  # the trainer's own log is complete
        else:
            name = log_name(lines.task)
        dropped = f"[{lines.dropped} lines left out]\n" if lines.dropped else ""
        log = self._write(name, dropped + lines.text.rstrip("\n") + "\n")
        if log.shortened:
            self._say_left_out(name, f"Too much output for a record: {name} lacks its beginning.")

    def _write(self, name: str, text: str) -> BoundedFile:
        log = self._logs.pop(name, None) or BoundedFile(self.folder / LOGS / name, most_bytes=_LOG_BYTES)
        while len(self._logs) >= _OPEN_LOGS:
            self._logs.pop(next(iter(self._logs))).close()
        self._logs[name] = log
        log.write(text.encode())
        if words := log.trouble():
            self.trouble(words)
        return log

    def _say_left_out(self, name: str, words: str) -> None:
        """Note it in the record itself, once per file."""
        if name not in self._left_out:
            self._left_out.add(name)
            self._write(TANDEM_LOG, words + "\n")

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self.trouble(f"{shown(str(self.folder))} cannot be written ({error.strerror or error}).")

    def trouble(self, words: str) -> None:
        """Part of the run could not be recorded. Reported once per run."""
        if not self._is_reported:
            self._is_reported = True
            self._on_trouble(unwritten(self.entry.run, words))


def unwritten(run: RunId, words: str) -> Problem:
    return Problem(
        code="record-unwritten",
        what=f"The history of the run {run} has gaps: {words}",
        fix="The training goes on. Free some space or make the folder writable, to record the rest.",
    )
