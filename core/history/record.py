"""One folder a run: its plan, summary, metrics and events as JSON, ``logs/``, ``outputs/``.

Blocks: every call is made on the writer's thread, in order. Never raises for the disk: a training goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from core.history.best import with_epoch
from core.history.index import History, labelled
from core.history.metrics_file import MetricsFile
from core.home.private_file import write_atomically
from core.runtime.bounded_file import BoundedFile
from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.phases import ended
from core.vocabulary.plan import Plan
from core.vocabulary.run_folder import EVENTS, LOGS, METRICS, PLAN, PROJECT, SUMMARY, log_name


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

    def add(self, event: RunEvent) -> None:
        """Record what an event says."""
        match event:
            case ev.RunPlanned(plan=plan):
                self._try(lambda: self._plan(plan))
            case ev.MemberProgressed() | ev.MemberEndedEpoch() as metric:
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
            case ev.RunPhaseChanged(phase=phase):
                self._try(lambda: self._event(event))
                self.entry = replace(self.entry, phase=phase)
                if ended(phase):
                    took_s = max(0.0, self._wall_clock() - self.entry.started_s)
                    self.entry = replace(self.entry, duration_s=took_s)
                self._try(self._summary)
            case _:
                self._try(lambda: self._event(event))

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

    def _event(self, event: RunEvent) -> None:
        if self._events is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._events = (self.folder / EVENTS).open("ab", buffering=0)
        self._events.write(wire.to_json(event) + b"\n")

    def _log(self, event: ev.MemberLogged) -> None:
        lines = event.lines
        if lines.stream == "tandem":
            name = "tandem.log"
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


def unwritten(run: RunId, words: str) -> Problem:
    return Problem(
        code="record-unwritten",
        what=f"The history of the run {run} has gaps: {words}",
        fix="The training goes on. Free some space or make the folder writable: what comes then is recorded.",
    )
