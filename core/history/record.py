"""One folder a run: its plan, summary, metrics and events as JSON, ``logs/``, ``outputs/``.

Blocks: every call is made on the writer's thread, in order. Never raises for the disk: a training goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from core.history.attendance import Attendance, Turn
from core.history.best import with_epoch
from core.history.index import History, labelled
from core.history.metrics_file import MetricsFile, Report
from core.history.read import read_metrics
from core.home.private_file import write_atomically
from core.runtime.bounded_file import BoundedFile
from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.laptops import LaptopUsed, MembershipChanged
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.phases import ended
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.readings import Reading
from core.vocabulary.run_folder import EVENTS, LOGS, METRICS, PLAN, PROJECT, SUMMARY, TANDEM_LOG, log_name

_UNLIKE_CLOCKS_S = 86_400.0
"""Every member's record has the starter's time, unless its clock is out of the world."""


class RunRecord:
    """What this node records of one run. ``on_trouble`` is called once, on the writer's thread."""

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
        self._events: BinaryIO | None = None
        self._logs: dict[str, BoundedFile] = {}
        self._told = False
        self._chief: DeviceId | None = None
        self._attendance = Attendance()
        self._first_s: float | None = None
        """Of the first report, by the clock of whoever made it: where the run's axis begins."""
        self._skew_s: float | None = None
        """How far this node's clock is before that one. None until a report of this run came."""

    def add(self, event: RunEvent) -> None:
        """Record what an event says."""
        for turn in self._attendance.hear(event):
            self._try(lambda turn=turn: self._turn(turn))  # type: ignore[misc]
        match event:
            case ev.RunPlanned(plan=plan):
                self._try(lambda: self._plan(plan))
            case ev.MemberProgressed() | ev.MemberEndedEpoch() as metric:
                self._keep_time(metric)
                self._try(lambda: self._metrics.add(metric))
                if isinstance(metric, ev.MemberEndedEpoch) and metric.device == self._chief:
                    best = with_epoch(self.entry.best, metric.epoch)
                    self.entry = replace(self.entry, best=best)
            case ev.MemberLogged():
                self._log(event)
            case ev.MemberMeasured(expectation=expectation):
                self._try(lambda: self._event(event))
                # At once: whatever becomes of the run, what was measured is known.
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
                    if took_s is None:
                        took_s = max(0.0, self._wall_clock() - self.entry.started_s)
                    self.entry = replace(self.entry, duration_s=took_s)
                self._try(self._summary)
            case _:
                self._try(lambda: self._event(event))

    def note_use(self, device: DeviceId, reading: Reading) -> None:
        """How busy one of its laptops is now. Before the run's first report it has no place on its axis."""
        second = self._second(self._wall_clock())
        if second is not None and device in self.entry.device_ids:
            used = LaptopUsed(
                device=device,
                second=round(second, 2),
                cpu_pct=round(reading.cpu_pct, 1),
                gpu_pct=None if reading.gpu_pct is None else round(reading.gpu_pct, 1),
            )
            self._try(lambda: self._metrics.add(used))

    def go_on_from(self, folder: Path, moment: Moment) -> None:
        """The numbers of the run that is resumed, up to its checkpoint, as far as they are here."""
        for event in read_metrics(folder):
            if isinstance(event, ev.MemberProgressed) and event.progress.done is None:
                break  # of an older version, which did not count over a whole training
            if _came_before(event, moment):
                self.add(event)
        self._skew_s = None  # by reports of then it is not known

    def keep_project(self, project: Manifest) -> None:
        """The files that the run begins with: resuming it compares its code with them."""
        self._try(lambda: self._project(project))

    def label(self, name: str | None, note: str | None) -> None:
        """As ``History.label``, for the run under way: else the next phase would write the old name."""
        self.entry = labelled(self.entry, name, note)
        self._try(self._summary)

    def close(self) -> None:
        self._try(self._metrics.close)
        if self._events is not None:
            self._try(self._events.close)
            self._events = None
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _project(self, project: Manifest) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self.folder / PROJECT, wire.to_json(project))

    def _plan(self, plan: Plan) -> None:
        self._chief = plan.chief.device
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self.folder / PLAN, wire.to_json(plan))
        self.entry = replace(
            self.entry,
            devices=tuple(member.name for member in plan.members),
            device_ids=tuple(member.device for member in plan.members),
        )
        self._summary()

    def _summary(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self.folder / SUMMARY, wire.to_json(self.entry))
        finally:
            self._history.put(self.entry)  # which waits where the disk refuses: the folder cannot

    def _turn(self, turn: Turn) -> None:
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
        told_s = report.progress.at_s if isinstance(report, ev.MemberProgressed) else report.epoch.at_s
        if self._first_s is None:
            self._first_s = told_s
        if self._skew_s is None:
            self._skew_s = self._wall_clock() - told_s

    def _second(self, at_s: float) -> float | None:
        """Where a moment of this node's clock lies on the run's axis; None before its first report."""
        if self._first_s is None or self._skew_s is None:
            return None
        return at_s - self._skew_s - self._first_s

    def _event(self, event: RunEvent | MembershipChanged) -> None:
        if self._events is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._events = (self.folder / EVENTS).open("ab", buffering=0)
        self._events.write(wire.to_json(event) + b"\n")

    def _log(self, event: ev.MemberLogged) -> None:
        lines = event.lines
        if lines.stream == "tandem":
            name = TANDEM_LOG
        elif event.device == self._me:
            return  # the trainer's own log has it whole
        else:
            name = log_name(lines.task)
        if name not in self._logs:
            self._logs[name] = BoundedFile(self.folder / LOGS / name)
        log = self._logs[name]
        if lines.dropped:
            log.write(f"[{lines.dropped} lines left out]\n".encode())
        log.write(lines.text.rstrip("\n").encode() + b"\n")
        if words := log.trouble():
            self.trouble(words)

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self.trouble(f"{shown(str(self.folder))} cannot be written ({error.strerror or error}).")

    def trouble(self, words: str) -> None:
        """Part of the run could not be recorded. Reported once a run."""
        if not self._told:
            self._told = True
            self._on_trouble(unwritten(self.entry.run, words))


def _came_before(event: Report, moment: Moment) -> bool:
    """Whether a checkpoint holds it."""
    if isinstance(event, ev.MemberProgressed):
        step = event.progress
        return (step.fit, step.epoch, step.batch + 1) <= (moment.fit, moment.epoch, moment.batch)
    epoch = event.epoch
    return epoch.whole and (epoch.fit, epoch.epoch + 1, 0) <= (moment.fit, moment.epoch, moment.batch)


def unwritten(run: RunId, words: str) -> Problem:
    return Problem(
        code="record-unwritten",
        what=f"The history of the run {run} has gaps: {words}",
        fix="The training goes on. Free some space or make the folder writable: what comes then is recorded.",
    )
