"""Records every run: its files while it is under way, and the history, with sweeps. On the core loop."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from core.history.history import History, labelled
from core.history.read import read_outcome, read_plan, read_run
from core.history.record import RunRecord
from core.report.write import renew_report, write_report, write_sweep
from core.run.stand_in import StandIn, last_stand_in
from core.runtime.background import WorkerThread
from core.runtime.removal import remove_tree
from core.speed.sentences import last_time
from core.sweep import kept, problems
from core.vocabulary.answers import PlanMade, RunDetails, RunEntry, RunList
from core.vocabulary.commands import DeleteRun, LabelRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import (
    MemberLogged,
    MemberPhaseChanged,
    MemberProgressed,
    MirroredEvent,
    RunPhaseChanged,
    TelemetryReported,
)
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.laptops import Machine
from core.vocabulary.manifest import Manifest
from core.vocabulary.phases import Planning, ended
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.progress import Summary
from core.vocabulary.run_folder import REPORT
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep

MOST_WAITING = 1_000
"""Limit of events that wait for the disk; an honest run has a few. Beyond it, frequent kinds are dropped, so
that a flood takes no memory while a disk is slow."""
_MANY = (MemberPhaseChanged, MemberLogged, MemberProgressed)
RUNS_SEARCHED = 200
"""The number of newest runs searched for one like the planned one."""


class Recorder:
    """``on_trouble``: something could not be recorded; the run continues."""

    def __init__(self, runs: Path, sweeps: Path, me: DeviceId, on_trouble: Callable[[Problem], None]) -> None:
        self._runs, self._sweeps = runs, sweeps
        self._me = me
        self._on_trouble = on_trouble
        self._loop = asyncio.get_running_loop()
        self._disk = WorkerThread("history")
        self._reports = WorkerThread("reports")
        self._history = History(runs)
        self._records: dict[RunId, RunRecord] = {}
        """Records of runs under way: this laptop's own, and trials elsewhere."""
        self._behind: set[RunId] = set()
        """Runs with which the disk did not keep up."""

    async def open(self) -> None:
        await self._disk.do(self._history.open)
        if self._history.problem is not None:
            self._on_trouble(self._history.problem)

    async def close(self) -> None:
        """Close after everything passed on is written."""
        for record in self._records.values():
            self._disk.post(record.close)
        self._disk.post(self._history.close)
        await self._disk.close()
        await self._reports.close()

    async def settle(self) -> None:
        """Wait until everything passed on so far is written."""
        await self._disk.do(lambda: None)

    def is_recording(self, run: RunId) -> bool:
        return run in self._records

    def begin(
        self,
        plan: Plan,
        source: str = "",
        spec: RunSpec | None = None,
        project: Manifest | None = None,
        state: State | None = None,
    ) -> None:
        """Start the record that ``record`` adds to. Only the starter knows the optional arguments."""
        folder = self._runs / plan.run
        entry = RunEntry(
            run=plan.run,
            started_s=time.time(),
            script=plan.script,
            source=source,
            arguments=plan.arguments,
            devices=tuple(member.name for member in plan.members),
            device_ids=tuple(member.device for member in plan.members),
            spec=spec,
            resumed=None if plan.resume is None else plan.resume.run,
            sweep="" if plan.trial is None else plan.trial.sweep,
            phase=Planning(),
            folder=str(folder),
            machines={} if state is None else machines(plan, state),
        )
        record = RunRecord(folder, entry, self._me, self._history, self._pass_on_trouble)
        self._records[plan.run] = record
        if project is not None:
            self._disk.post(record.keep_project, project)
        if plan.resume is not None:
            back, before = bool(plan.resume.back), self._runs / plan.resume.run
            self._disk.post(partial(record.go_on_from, before, plan.resume.moment, back=back))

    def record(self, event: MirroredEvent) -> None:
        """Add an event; the last phase ends the record."""
        record = self._records.get(event.run)
        if record is None:
            return
        if isinstance(event, _MANY) and self._disk.waiting >= MOST_WAITING:
            if event.run not in self._behind:
                self._behind.add(event.run)
                self._disk.post(record.trouble, "the disk does not keep up.")
            return
        self._disk.post(record.add, event)
        if isinstance(event, RunPhaseChanged) and ended(event.phase):
            self._disk.post(self._close, record)
            del self._records[event.run]
            self._behind.discard(event.run)

    def note_use(self, event: TelemetryReported) -> None:
        """Record how busy a laptop is, during a run."""
        for record in self._records.values():
            self._disk.post(record.note_use, event.device, event.reading)

    def _close(self, record: RunRecord) -> None:
        # Its own thread: the history stays responsive while a plot is drawn.
        record.close()
        self._reports.post(write_report, record)

    async def reports_written(self) -> None:
        """Waits for the reports of runs that have just ended."""
        for thread in (self._disk, self._reports):
            await thread.do(lambda: None)

    async def cut_off(self) -> tuple[RunEntry, ...]:
        """The newest run that was under way when Tandem ended without ending it, or the newest run of all if
        an earlier start of this node found that; then those that it resumes."""
        found = self._history.cut_off or self._history.cut_off_before
        return () if found is None else await self._disk.do(self._history.chain, found)

    @property
    def is_cut_off_anew(self) -> bool:
        """Whether this start of the node is the first to find it."""
        return self._history.cut_off is not None

    async def newest(self, limit: int) -> RunList:
        entries = await self._disk.do(self._history.newest, limit)
        sweeps = await self._disk.do(self._newest_sweeps, limit)
        return RunList(runs=entries, sweeps=sweeps, problem=self._history.problem)

    async def find(self, beginning: str, *, points: bool = True) -> RunDetails:
        """Raises ``TandemError`` if neither a run nor a sweep matches, or more than one run."""
        try:
            entry = await self._disk.do(self._history.find, beginning)
        except TandemError as error:
            sweep = await self._disk.do(kept.find, self._sweeps, beginning)
            if error.problem.code != "run-unknown" or sweep is None:
                raise
            return await self._disk.do(self._sweep_details, sweep)
        read = read_run if points else read_outcome
        return await asyncio.to_thread(read, entry, self._runs / entry.run)

    async def change(self, command: LabelRun | DeleteRun) -> None:
        """Raises ``TandemError``."""
        if isinstance(command, LabelRun):
            await self.label(command.run, command.name, command.note)
        else:
            await self.delete(command.run)

    async def label(self, run: RunId, name: str | None, note: str | None) -> None:
        """As ``LabelRun`` asks. Raises ``TandemError``."""
        if (record := self._records.get(run)) is not None:
            await self._disk.do(record.label, name, note)
            return
        if (sweep := await self._disk.do(self._sweep, run)) is not None:
            entry = labelled((await self._disk.do(self._sweep_details, sweep)).entry, name, note)
            sweep = replace(sweep, name=entry.name, note=entry.note)
            await self._disk.do(kept.write, self._sweeps, sweep)
            self.report_sweep(sweep)
            return
        entry = await self._disk.do(self._history.label, run, name, note)
        self._reports.post(renew_report, entry, self._runs / entry.run)

    async def delete(self, run: RunId) -> None:
        """As ``DeleteRun`` asks. Raises ``TandemError``, also for the run that the present one resumes."""
        if any(record.entry.resumed == run for record in self._records.values()):
            raise TandemError(
                code="run-resumed",
                what="The run under way resumes this one, and needs its checkpoint.",
                fix="Delete it when that run is over.",
            )
        if (sweep := await self._disk.do(self._sweep, run)) is not None:
            for trial in await self._disk.do(self._history.of_sweep, sweep.sweep):
                await self._disk.do(self._history.delete, trial.run)
            await self._disk.do(remove_tree, self._sweeps / sweep.sweep)
        else:
            await self._disk.do(self._history.delete, run)

    # --- sweeps --------------------------------------------------------------------------------------------

    def report_sweep(self, sweep: Sweep) -> None:
        """Write the report of a sweep that is over."""
        self._disk.post(self._report_sweep, sweep)

    def _report_sweep(self, sweep: Sweep) -> None:
        """After the reports of its trials: on the disk's thread, whose earlier work ended their records."""
        entry, runs = self._sweep_details(sweep).entry, self._history.of_sweep(sweep.sweep)
        self._reports.post(write_sweep, sweep, entry, runs)

    def _newest_sweeps(self, limit: int) -> tuple[RunEntry, ...]:
        newest = itertools.islice(kept.find_all(self._sweeps), max(0, min(limit, sys.maxsize)))
        return tuple(self._sweep_details(sweep).entry for sweep in newest)

    def _sweep(self, run: str) -> Sweep | None:
        """The sweep with exactly this id. Raises ``TandemError`` while it is under way."""
        found = next((each for each in kept.find_all(self._sweeps, run) if each.sweep == run), None)
        if found is not None and found.under_way:
            raise TandemError.of(problems.under_way())
        return found

    def _sweep_details(self, sweep: Sweep) -> RunDetails:
        entry = kept.entry_of(sweep, self._sweeps, self._history.of_sweep(sweep.sweep))
        report = self._sweeps / sweep.sweep / REPORT
        return RunDetails(entry=entry, sweep=sweep, report=str(report) if report.is_file() else "")

    async def last_stand_in(self) -> StandIn | None:
        """The run for which this laptop stands in, according to the records."""
        return await self._disk.do(last_stand_in, self._history, self._runs, self._me)

    async def with_last_time(self, made: PlanMade, source: str) -> PlanMade:
        """``made``, with the speed of the newest run of the same script on the same devices."""
        found = await self._disk.do(newest_alike, self._history, self._runs, made.plan, source)
        return made if found is None else with_last_time(made, *found)

    def _pass_on_trouble(self, problem: Problem) -> None:
        self._loop.call_soon_threadsafe(self._on_trouble, problem)


def machines(plan: Plan, state: State) -> dict[DeviceId, Machine]:
    """The members' hardware, as far as this node knows: nothing for members it was never linked to."""
    found = {}
    for member in plan.members:
        here = state.me is not None and member.device == state.me.device
        known = state.me if here else state.devices.get(member.device)
        if known is not None and (known.versions is not None or known.hardware is not None):
            found[member.device] = Machine(versions=known.versions, hardware=known.hardware)
    return found


def newest_alike(history: History, runs: Path, plan: Plan, source: str) -> tuple[Summary, Plan] | None:
    """The newest run of the script at ``source`` on exactly the devices of ``plan`` whose speed is known.

    Blocks: on the history's thread. None without a readable history.
    """
    wanted = {member.device for member in plan.members}
    try:
        entries = history.newest(RUNS_SEARCHED)
    except TandemError:
        return None
    for entry in entries:
        if entry.source != source or len(entry.devices) != len(wanted):
            continue
        then = read_plan(runs / entry.run)
        if then is None or {member.device for member in then.members} != wanted:
            continue
        if last_time(entry.summary, then):
            return entry.summary, then
    return None


def with_last_time(made: PlanMade, summary: Summary, then: Plan) -> PlanMade:
    """``then`` is that run's plan. Leaves out advice that the planned run already follows."""
    plan = made.plan
    names = {member.device: member.name for member in plan.members}
    said = last_time(summary, replace(then, wire=plan.wire, balance=plan.balance), names)
    shares = summary.settled.shares if summary.settled is not None else {}
    devices = [member.device for member in plan.members]
    known = plan.balance and all(device in shares for device in devices)
    return replace(
        made,
        expectation=said.what,
        advice=said.advice,
        last_shares={device: shares[device] for device in devices} if known else {},
    )
