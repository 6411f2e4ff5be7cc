"""Drives a sweep: starts its trials as runs, saves it, and continues it. On the core loop."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from types import MappingProxyType

from msgspec.structs import replace

from core.cluster.make_plan import new_run_id
from core.home.home import Home
from core.run import abilities, planning
from core.run.planner import TrialWanted
from core.run.runs import NodeRuns
from core.runtime.background import Background, WorkerThread
from core.runtime.timers import CancelTimer, SetTimer, TimerFired, Timers
from core.sweep import kept, machine, problems
from core.sweep import state as sw
from core.vocabulary import events as ev
from core.vocabulary.errors import TandemError
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, RunId, SweepId
from core.vocabulary.phases import Outcome
from core.vocabulary.plan import RunSpec, TrialOf
from core.vocabulary.state import State
from core.vocabulary.sweep import MOST_SETS, MOST_TRIALS, Sweep, SweepSpec, Trial

_SEEDS = 1 << 30
_log = logging.getLogger(__name__)


class Sweeps:
    """One per node, with one sweep at a time. ``emit`` must fold the event into ``state()`` before it
    returns; ``on_active`` is called when a sweep begins or ends. Commands raise ``TandemError``."""

    def __init__(
        self,
        home: Home,
        runs: NodeRuns,
        *,
        state: Callable[[], State],
        emit: Callable[[Event], None],
        on_active: Callable[[], None],
        background: Background,
    ) -> None:
        self._folder, self._home = home.sweeps, home
        self._runs, self._me = runs, runs.me
        self._state = state
        self._emit, self._on_active = emit, on_active
        self._background = background
        self._disk = WorkerThread("sweeps")
        self._sweeping: sw.Sweeping | None = None
        self._project: planning.LocalProject | None = None
        self._numbers: dict[RunId, int] = {}
        """The numbers of the trials under way, by run."""
        self._beginning = self._closing = False
        self._timers = Timers[sw.Wait](asyncio.get_running_loop(), self._on_time)

    @property
    def active(self) -> bool:
        return self._sweeping is not None

    # --- life ----------------------------------------------------------------------------------------------

    async def open(self, *, go_on: bool) -> None:
        """Show the newest sweep. ``go_on``: continue it if it was under way when Tandem ended."""
        sweep = await self._disk.do(kept.find, self._folder, "")
        if sweep is None:
            return
        was_under_way = sweep.under_way
        if was_under_way:
            sweep = replace(machine.resumed(sweep), phase="stopped")
            self._disk.post(self._keep, sweep)
        self._emit(ev.SweepChanged(sweep=sweep))
        if was_under_way and go_on:
            self._background.start("go on with a sweep", self._go_on(sweep.sweep))
        elif was_under_way:
            self._emit(ev.NoticeRaised(problem=problems.cut_off(sweep.script, sweep.sweep)))

    async def close(self) -> None:
        """Leaves the sweep under way on the disk. Call before the runs end."""
        self._closing = True
        self._timers.cancel_all()
        await self._disk.close()

    async def _go_on(self, sweep: SweepId) -> None:
        try:
            await self.resume(sweep, ())
        except TandemError as error:
            self._emit(ev.NoticeRaised(problem=error.problem))

    # --- commands ------------------------------------------------------------------------------------------

    async def start(self, spec: SweepSpec) -> SweepId:
        """Returns as soon as the project is read."""
        self._check_idle()
        run = spec.run
        devices = planning.choose_devices(run, self._me, self._state())[1:]
        if not devices and not spec.here:
            raise TandemError.of(problems.nobody())
        if not 0 < len(spec.argument_sets) <= MOST_SETS:
            raise TandemError.of(problems.too_many(len(spec.argument_sets)))
        spec = replace(spec, run=replace(run, devices=devices, solo=not devices))
        self._beginning = True
        try:
            project = await self._read(spec)
            seed = secrets.randbelow(_SEEDS) if run.seed is None else run.seed
            name, digest = project.manifest.script, project.manifest.digest
            sweep = machine.plan(SweepId(new_run_id()), spec, name, digest, seed)
            if not 0 < len(sweep.trials) <= MOST_TRIALS:
                raise TandemError.of(problems.too_many_trials(len(sweep.trials)))
            await self._disk.do(kept.write_project, self._folder, sweep.sweep, project.manifest)
        finally:
            self._beginning = False
        self._begin(sweep, project)
        return sweep.sweep

    async def resume(self, beginning: str, more: tuple[tuple[str, ...], ...]) -> SweepId:
        """As ``ResumeSweep`` asks."""
        present = self._sweeping.sweep if self._sweeping is not None else None
        if present is not None and more and present.sweep.startswith(beginning):
            self._check_room(present, more)
            self._handle(sw.SetsAdded(more))
            return present.sweep
        self._check_idle()
        self._beginning = True
        try:
            found = await self._disk.do(kept.find, self._folder, beginning)
            then = None if found is None else await self._disk.do(kept.project_of, self._folder, found.sweep)
            if found is None or then is None:
                raise TandemError.of(problems.unknown(beginning))
            self._check_room(found, more)
            sweep = machine.resumed(machine.with_sets(found, more, found.trials[0].seed))
            if all(trial.over for trial in sweep.trials):
                raise TandemError.of(problems.complete())
            project = planning.with_files_of(await self._read(sweep.spec), then)
            if project.manifest.digest != sweep.project:
                raise TandemError.of(problems.changed(sweep.script))
        finally:
            self._beginning = False
        self._begin(sweep, project)
        return sweep.sweep

    def stop(self) -> None:
        if self._sweeping is None:
            raise TandemError.of(problems.no_sweep())
        self._handle(sw.StopPressed())

    def stops(self) -> bool:
        """Whether Stop stops the sweep: nothing else is under way here."""
        run = self._state().run
        other = self._runs.busy and (run is None or run.over or run.plan.run not in self._numbers)
        return self.active and not other

    def _check_idle(self) -> None:
        if self.active or self._beginning or self._closing:
            raise TandemError.of(problems.under_way())

    def _check_room(self, sweep: Sweep, more: tuple[tuple[str, ...], ...]) -> None:
        sets = len({*sweep.spec.argument_sets, *more})
        if sets > MOST_SETS:
            raise TandemError.of(problems.too_many(sets))
        if (trials := sets * sweep.spec.repeat) > MOST_TRIALS:
            raise TandemError.of(problems.too_many_trials(trials))

    async def _read(self, spec: SweepSpec) -> planning.LocalProject:
        """The project, with the files named by any set of arguments."""
        words = tuple(dict.fromkeys(word for each in spec.argument_sets for word in each))
        return await self._runs.planner.read_project(replace(spec.run, arguments=words))

    def _begin(self, sweep: Sweep, project: planning.LocalProject) -> None:
        names = planning.names_of(self._me, self._state())
        devices = (*((self._me,) if sweep.spec.here else ()), *sweep.spec.run.devices)
        laptops = {device: sw.Laptop(names.get(device) or device[:8]) for device in devices}
        self._project = project
        self._sweeping = sw.Sweeping(sweep=sweep, laptops=MappingProxyType(laptops))
        self._handle(sw.SweepBegun())
        self._on_active()
        self.check_laptops()

    # --- events --------------------------------------------------------------------------------------------

    def on_event(self, event: Event) -> None:
        """Any event of this node, once it is folded into the state."""
        if self._sweeping is None:
            return
        if isinstance(event, ev.MirroredEvent):
            self._on_run_event(event)
        elif isinstance(event, ev.DeviceEvent) and not isinstance(event, ev.TelemetryReported):
            self.check_laptops()

    def check_laptops(self) -> None:
        """Check whether a laptop is free now, or gone."""
        if self._sweeping is None:
            return
        for device in self._sweeping.laptops:
            known = self._state().devices.get(device)
            if device == self._me:
                there, free = True, not self._runs.busy
            else:
                there = known is not None and known.linked
                free = known is not None and abilities.why_not(known) is None
            self._handle(sw.LaptopSeen(device, there, free))

    def _on_run_event(self, event: ev.MirroredEvent) -> None:
        number = self._numbers.get(event.run)
        if number is None:
            return
        match event:
            case ev.MemberEndedEpoch(epoch=epoch):
                self._handle(sw.TrialEndedEpoch(number, epoch))
            case ev.MemberEnded(exit=end):
                self._handle(sw.TrialTrainerEnded(number, end.reason))
            case ev.RunPhaseChanged(phase=phase) if isinstance(phase, Outcome):
                del self._numbers[event.run]
                self._handle(sw.TrialOver(number, phase))
                self.check_laptops()

    def _on_time(self, wait: sw.Wait) -> None:
        self._handle(TimerFired(wait))
        self.check_laptops()

    def _handle(self, input: sw.Input) -> None:
        if self._sweeping is None or self._closing:
            return
        self._sweeping, effects = machine.step(self._sweeping, input, time.monotonic())
        sweep = self._sweeping.sweep
        if not sweep.under_way:
            self._sweeping = self._project = None
        for effect in effects:
            self._do(effect, sweep)
        if not sweep.under_way:
            self._on_active()
            # The last trial's end is recorded after this event.
            asyncio.get_running_loop().call_soon(self._runs.history.report_sweep, sweep)

    def _do(self, effect: sw.Effect, sweep: Sweep) -> None:
        match effect:
            case sw.StartTrial(number, device):
                starting = self._start(sweep, sweep.trial(number), device)
                self._background.start("begin a trial", starting)
            case sw.StopTrial(number):
                self._stop(sweep.trial(number))
            case sw.DeleteModel(run):
                self._disk.post(kept.delete_models, self._home.runs / run)
            case sw.Keep():
                self._disk.post(self._keep, sweep)
            case SetTimer(name, seconds):
                self._timers.set(name, seconds)
            case CancelTimer(name):
                self._timers.cancel(name)
            case event:
                if isinstance(event, ev.TrialChanged) and event.trial.problem is not None:
                    _log.info("trial %d of %s: %s", event.trial.number, sweep.sweep, event.trial.problem)
                self._emit(event)

    async def _start(self, sweep: Sweep, trial: Trial, device: DeviceId) -> None:
        assert self._project is not None, "it begins while its sweep is under way"
        sets = sweep.spec.argument_sets
        place = TrialOf(sweep=sweep.sweep, number=trial.number, trials=len(sweep.trials), argument_sets=sets)
        wanted = TrialWanted(new_run_id(), place, self._project)
        spec = _spec_of(sweep.spec.run, trial, device)
        self._numbers[wanted.run] = trial.number
        try:
            if device == self._me:
                await self._runs.start(spec, trial=wanted)
            else:
                await self._runs.trials.start(spec, device, wanted, self._on_run_event)
        except TandemError as error:
            self._numbers.pop(wanted.run, None)
            self._handle(sw.TrialNotStarted(trial.number, error.problem))
            self.check_laptops()
        else:
            self._handle(sw.TrialStarted(trial.number, wanted.run))

    def _stop(self, trial: Trial) -> None:
        assert trial.run is not None, "only such trials are stopped"
        run = self._state().run
        if trial.device == self._me:
            if run is not None and run.plan.run == trial.run and not run.over:
                self._runs.stop()
        else:
            self._runs.trials.stop(trial.run)

    def _keep(self, sweep: Sweep) -> None:
        """On the disk's thread."""
        try:
            kept.write(self._folder, sweep)
        except OSError as error:
            _log.warning("the sweep %s could not be saved: %s", sweep.sweep, error)


def _spec_of(run: RunSpec, trial: Trial, device: DeviceId) -> RunSpec:
    return replace(
        run,
        arguments=trial.arguments,
        seed=trial.seed,
        devices=(),
        solo=True,
        roles={},
        shares={},
        shares_total=None,
        opens={each: opened for each, opened in run.opens.items() if each == device},
    )
