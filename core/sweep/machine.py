"""A sweep: ``step(state, input, now_s)`` → the next state, and effects. Pure.

Invariants: a laptop has at most one trial at a time; a trial gets at most one result; while the sweep is
under way, a trial is running, a laptop is connected, or the timer ``absent`` is running.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from msgspec import structs

from core.history.best import ranked, with_epoch
from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.sweep import problems
from core.sweep import state as sw
from core.vocabulary.errors import Problem
from core.vocabulary.events import SweepChanged, TrialChanged
from core.vocabulary.ids import DeviceId, ProjectId, SweepId
from core.vocabulary.phases import Failed, Finished, Outcome, Stopped
from core.vocabulary.sweep import Sweep, SweepSpec, Trial

REST_S = 5.0
"""How long a laptop on which a trial failed waits for the next one."""
ABSENT_S = 600.0
"""How long a sweep continues without any laptop."""
MOST_BEGUN = 5
"""How often a trial that is lost again and again is started before it counts as failed."""
BY_THE_SCRIPT = ("script-error", "out-of-memory")
"""Reasons for a trainer's end that would recur on every laptop."""
TEMPORARY = frozenset(
    {"device-lost", "device-away", "device-busy", "device-offline", "busy", "killed", "train-crossed"}
)
"""Codes of failures after which the laptop still takes trials."""


def plan(sweep: SweepId, spec: SweepSpec, script: str, project: ProjectId, seed: int) -> Sweep:
    """A new sweep. ``seed``: for the first trial of each set of arguments."""
    empty = structs.replace(spec, argument_sets=())
    made = Sweep(sweep=sweep, spec=empty, script=script, project=project, trials=())
    return with_sets(made, spec.argument_sets, seed)


def resumed(sweep: Sweep) -> Sweep:
    """``sweep``, under way again: trials without a result wait."""
    trials = tuple(
        each if each.status == "finished" else structs.replace(each, status="waiting", begun=0, problem=None)
        for each in sweep.trials
    )
    return structs.replace(sweep, trials=trials, phase="running", problem=None)


def step(state: sw.Sweeping, input: sw.Input, now_s: float) -> tuple[sw.Sweeping, tuple[sw.Effect, ...]]:
    """The next state, and effects. ``now_s``: seconds, monotonic. Once the sweep is over, nothing changes."""
    if not state.sweep.under_way:
        return state, ()
    turn = _Turn(state, now_s)
    turn.on_input(input)
    turn.go_on()
    return turn.state, tuple(turn.effects)


def with_sets(sweep: Sweep, sets: tuple[tuple[str, ...], ...], seed: int) -> Sweep:
    """``sweep`` with trials for the sets that it lacks: all sets with the first seed, then with the next."""
    known = sweep.spec.argument_sets
    new = tuple(dict.fromkeys(each for each in sets if each not in known))
    first = len(sweep.trials) + 1
    pairs = [(each, seed + repeat) for repeat in range(sweep.spec.repeat) for each in new]
    trials = tuple(
        Trial(number=first + at, arguments=each, seed=seeded) for at, (each, seeded) in enumerate(pairs)
    )
    spec = structs.replace(sweep.spec, argument_sets=(*known, *new))
    return structs.replace(sweep, spec=spec, trials=(*sweep.trials, *trials))


class _Turn:
    """A step under way: the state, and the effects so far."""

    def __init__(self, state: sw.Sweeping, now_s: float) -> None:
        self.state, self._now_s = state, now_s
        self.effects: list[sw.Effect] = []

    # --- inputs --------------------------------------------------------------------------------------------

    def on_input(self, input: sw.Input) -> None:
        match input:
            case sw.SweepBegun():
                self._announce()
            case sw.LaptopSeen(device, there, free) if device in self.state.laptops:
                laptop = self.state.laptops[device]
                came = there and not laptop.there
                out = None if came and laptop.out and laptop.out.code == "stopped" else laptop.out
                self._update_laptop(device, replace(laptop, there=there, free=free, out=out))
            case sw.TrialStarted(number, run) if self._trial(number).status == "running":
                self._update_trial(structs.replace(self._trial(number), run=run), keep=True)
                if self.state.sweep.phase == "stopping":
                    self.effects.append(sw.StopTrial(number))
            case sw.TrialNotStarted(number, problem):
                self._mark_busy(self._trial(number))
                self._lost(self._trial(number), problem)
            case sw.TrialEndedEpoch(number, epoch):
                trial = self._trial(number)
                self._update_trial(
                    structs.replace(
                        trial,
                        epochs=trial.epochs + epoch.whole,
                        logs=epoch.logs if epoch.whole else trial.logs,
                        best=with_epoch(trial.best, epoch),
                        diverged=epoch.diverged,
                    )
                )
            case sw.TrialTrainerEnded(number, reason):
                reasons = MappingProxyType({**self.state.reasons, number: reason})
                self.state = replace(self.state, reasons=reasons)
            case sw.TrialOver(number, phase):
                self._mark_busy(self._trial(number))
                self._over(self._trial(number), phase)
            case sw.SetsAdded(argument_sets):
                sweep = self.state.sweep
                self._update_sweep(with_sets(sweep, argument_sets, sweep.trials[0].seed))
                self._announce()
            case sw.StopPressed():
                self._update_sweep(structs.replace(self.state.sweep, phase="stopping"))
                self._announce()
                self.effects += [sw.StopTrial(each.number) for each in self._running() if each.run]
            case TimerFired(wait):
                self.state = replace(self.state, waits=self.state.waits - {wait})
                self._on_wait_over(wait)
            case sw.LaptopSeen() | sw.TrialStarted():
                pass  # of a laptop that takes no trials; of a trial that is over already
            case _:
                assert_never(input)

    def _on_wait_over(self, wait: sw.Wait) -> None:
        if wait == "rest":
            for device, laptop in self.state.laptops.items():
                self._update_laptop(device, replace(laptop, rests=False))
            return
        names = [each.name for each in self.state.laptops.values() if each.out is None]
        self._end("failed", problems.nobody_came(names, ABSENT_S))

    def _mark_busy(self, trial: Trial) -> None:
        """A trial's laptop takes the next one once it is reported to be free."""
        assert trial.device is not None
        self._update_laptop(trial.device, replace(self.state.laptops[trial.device], free=False))

    def _over(self, trial: Trial, phase: Outcome) -> None:
        reason = self.state.reasons.get(trial.number)
        left = {number: each for number, each in self.state.reasons.items() if number != trial.number}
        self.state = replace(self.state, reasons=MappingProxyType(left))
        match phase:
            case Finished():
                self._note_time(trial)
                self._update_trial(structs.replace(trial, status="finished", problem=None), keep=True)
                self._delete_models()
            case Failed(problem=problem) if reason in BY_THE_SCRIPT:
                self._update_trial(structs.replace(trial, status="failed", problem=problem), keep=True)
            case Failed(problem=problem):
                self._lost(trial, problem)
            case Stopped(by=by):
                self._lost(trial, problems.taken_back(by or trial.laptop))

    def _lost(self, trial: Trial, problem: Problem) -> None:
        """A trial ended without a result: start it again elsewhere, at most ``MOST_BEGUN`` times."""
        assert trial.device is not None
        if self.state.sweep.phase == "stopping":
            self._update_trial(structs.replace(trial, status="waiting"), keep=True)
            return
        status = "failed" if trial.begun >= MOST_BEGUN else "waiting"
        self._update_trial(structs.replace(trial, status=status, problem=problem), keep=True)
        laptop = replace(self.state.laptops[trial.device], rests=True)
        passes = problem.code in TEMPORARY or problem.code.startswith("link-")
        self._update_laptop(trial.device, laptop if passes else replace(laptop, out=problem))
        self._wait("rest", REST_S)

    def _delete_models(self) -> None:
        sweep = self.state.sweep
        if sweep.spec.models is None:
            return
        for trial in ranked(sweep)[sweep.spec.models :]:
            if trial.model and trial.run is not None:
                self._update_trial(structs.replace(trial, model=False))
                self.effects.append(sw.DeleteModel(trial.run))

    # --- going on ------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Give waiting trials to free laptops, or end."""
        sweep = self.state.sweep
        if not sweep.under_way:
            return
        running = self._running()
        if sweep.phase == "stopping":
            if not running:
                self._end("stopped")
            return
        waiting = [trial for trial in sweep.trials if trial.status == "waiting"]
        if not waiting:
            if not running:
                self._end("finished")
            return
        at_work = {trial.device for trial in running}
        able = [
            device
            for device, laptop in self.state.laptops.items()
            if laptop.free and not laptop.rests and laptop.out is None and device not in at_work
        ]
        for device in able:
            if waiting and self._others_are_sooner(device, len(waiting)):
                self._wait("rest", REST_S)  # then everything is looked at again
            elif waiting:
                self._begin(waiting.pop(0), device)
        left = [laptop for laptop in self.state.laptops.values() if laptop.out is None]
        if able or running:
            self._cancel("absent")
        elif not left:
            why = [laptop.out for laptop in self.state.laptops.values() if laptop.out is not None]
            self._end("failed", problems.nobody_left(why))
        elif any(laptop.there for laptop in left):
            self._cancel("absent")
        elif "absent" not in self.state.waits:
            self._wait("absent", ABSENT_S)

    def _others_are_sooner(self, device: DeviceId, waiting: int) -> bool:
        """Whether the laptops at work would finish all waiting trials before this one finishes one: then the
        sweep ends sooner without it. They are counted on unless they take much longer than before."""
        own_s, done = self._mean_s(device), 0
        for trial in self._running():
            mean_s = self._mean_s(trial.device)
            left_s = mean_s - (self._now_s - self.state.began_s.get(trial.number, self._now_s))
            there = trial.device is not None and self.state.laptops[trial.device].there
            if there and trial.device != device and mean_s and left_s > -mean_s:
                done += max(0, int((own_s - max(0.0, left_s)) // mean_s))
        return done >= waiting

    def _mean_s(self, device: DeviceId | None) -> float:
        """Mean time of a laptop's finished trials; 0: there is none."""
        took_s = self.state.took_s.get(device, ()) if device is not None else ()
        return sum(took_s) / len(took_s) if took_s else 0.0

    def _note_time(self, trial: Trial) -> None:
        assert trial.device is not None
        took_s = self._now_s - self.state.began_s[trial.number]
        known = self.state.took_s.get(trial.device, ())
        self.state = replace(
            self.state, took_s=MappingProxyType({**self.state.took_s, trial.device: (*known, took_s)})
        )

    def _begin(self, trial: Trial, device: DeviceId) -> None:
        begun = structs.replace(
            trial,
            status="running",
            begun=trial.begun + 1,
            device=device,
            laptop=self.state.laptops[device].name,
            run=None,
            epochs=0,
            logs={},
            best={},
            diverged=None,
        )
        self._update_trial(begun)
        began_s = MappingProxyType({**self.state.began_s, trial.number: self._now_s})
        self.state = replace(self.state, began_s=began_s)
        self.effects.append(sw.StartTrial(trial.number, device))

    def _end(self, phase: str, problem: Problem | None = None) -> None:
        self._cancel("rest", "absent")
        self._update_sweep(structs.replace(self.state.sweep, phase=phase, problem=problem))
        self._announce()

    # --- pieces --------------------------------------------------------------------------------------------

    def _trial(self, number: int) -> Trial:
        return self.state.sweep.trial(number)

    def _running(self) -> list[Trial]:
        return [trial for trial in self.state.sweep.trials if trial.status == "running"]

    def _update_sweep(self, sweep: Sweep) -> None:
        self.state = replace(self.state, sweep=sweep)

    def _announce(self) -> None:
        self.effects += [SweepChanged(sweep=self.state.sweep), sw.Keep()]

    def _update_trial(self, trial: Trial, *, keep: bool = False) -> None:
        sweep = self.state.sweep.having(trial)
        self._update_sweep(sweep)
        self.effects.append(TrialChanged(sweep=sweep.sweep, trial=trial))
        if keep:
            self.effects.append(sw.Keep())

    def _update_laptop(self, device: DeviceId, laptop: sw.Laptop) -> None:
        laptops = MappingProxyType({**self.state.laptops, device: laptop})
        self.state = replace(self.state, laptops=laptops)

    def _wait(self, name: sw.Wait, seconds: float) -> None:
        self.state = replace(self.state, waits=self.state.waits | {name})
        self.effects.append(SetTimer(name, seconds))

    def _cancel(self, *names: sw.Wait) -> None:
        for name in self.state.waits.intersection(names):
            self.effects.append(CancelTimer(name))
        self.state = replace(self.state, waits=self.state.waits - set(names))
