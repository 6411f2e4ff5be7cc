"""Which laptop gets which trial, and what happens to trials that are lost, stopped or fail."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from msgspec import structs

from core.history.best import metric_of, ranked
from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.sweep import machine
from core.sweep import state as sw
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId, SweepId
from core.vocabulary.phases import ExitReason, Failed, Finished, Outcome, Stopped
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Diverged, EpochEnd
from core.vocabulary.sweep import Sweep, SweepSpec, Trial

ANNA, BEN = DeviceId("a" * 64), DeviceId("b" * 64)
SETS = (("--lr", "1"), ("--lr", "2"), ("--lr", "3"))
LOST = Failed(problem=Problem(code="device-lost", what="Ben is gone.", fix="Look there."))
REFUSED = Failed(problem=Problem(code="consent-refused", what="Ben said no.", fix="Ask."))


class Table:
    """A sweep under way, driven by hand."""

    def __init__(self, sets: tuple[tuple[str, ...], ...] = SETS, *, repeat: int = 1, models: int | None = 5):
        spec = SweepSpec(run=RunSpec(script="train.py"), argument_sets=sets, repeat=repeat, models=models)
        sweep = machine.plan(SweepId("s"), spec, "train.py", ProjectId("c" * 64), 7)
        laptops = {ANNA: sw.Laptop("anna"), BEN: sw.Laptop("ben")}
        self.state = sw.Sweeping(sweep=sweep, laptops=MappingProxyType(laptops))
        self.effects: list[sw.Effect] = []
        self.now_s = 0.0
        self.do(sw.SweepBegun())

    def do(self, *inputs: sw.Input) -> list[sw.Effect]:
        """The effects of these inputs."""
        new: list[sw.Effect] = []
        for each in inputs:
            self.state, effects = machine.step(self.state, each, self.now_s)
            new += effects
        self.effects += new
        return new

    @property
    def sweep(self) -> Sweep:
        return self.state.sweep

    def trial(self, number: int) -> Trial:
        return self.sweep.trial(number)

    def free(self, *devices: DeviceId) -> list[tuple[int, DeviceId]]:
        """Laptops become free: the trials that begin."""
        new = self.do(*(sw.LaptopSeen(device, there=True, free=True) for device in devices))
        begun = [(each.number, each.device) for each in new if isinstance(each, sw.StartTrial)]
        self.do(*(sw.TrialStarted(number, RunId(f"run{number}")) for number, _ in begun))
        return begun

    def end(self, number: int, phase: Outcome | None = None, reason: ExitReason = "finished") -> None:
        self.do(sw.TrialTrainerEnded(number, reason), sw.TrialOver(number, phase or Finished()))

    def learn(self, number: int, **logs: float) -> None:
        epoch = EpochEnd(at_s=0.0, epoch=0, epochs=1, step=1, logs=logs, seconds=1.0)
        self.do(sw.TrialEndedEpoch(number, epoch))


def test_a_faster_laptop_takes_more_trials() -> None:
    table = Table()
    assert table.free(ANNA, BEN) == [(1, ANNA), (2, BEN)]
    assert table.free(ANNA) == [], "it has one"
    table.end(2)
    assert [trial.status for trial in table.sweep.trials] == ["running", "finished", "waiting"]
    assert table.free(BEN) == [(3, BEN)]
    table.end(3)
    table.end(1)
    assert table.sweep.phase == "finished"
    assert table.do(sw.StopPressed()) == [], "nothing follows"


def test_a_slow_laptop_leaves_the_last_trials_to_a_fast_one_that_ends_them_sooner() -> None:
    table = Table(tuple(("--lr", str(number)) for number in range(8)))
    table.free(ANNA, BEN)  # ben takes three times as long
    for number, second in ((1, 10.0), (3, 20.0), (4, 30.0)):
        table.now_s = second
        table.end(number)
        table.free(ANNA)
    table.end(2)
    assert table.free(BEN) == [(6, BEN)], "anna would need 30 s more for three"
    for number, second in ((5, 40.0), (7, 50.0)):
        table.now_s = second
        table.end(number)
        table.free(ANNA)
    table.now_s = 52.0
    table.do(sw.TrialOver(6, LOST), TimerFired("rest"))
    assert table.trial(6).status == "waiting"
    assert table.free(BEN) == [], "anna has it in 18 s, and ben in 30"
    assert SetTimer("rest", machine.REST_S) in table.effects[-2:]
    table.do(sw.LaptopSeen(ANNA, there=False, free=False), sw.TrialOver(8, LOST))
    assert table.trial(6).device == BEN and table.trial(6).status == "running", "anna is gone"


def test_a_laptop_waits_for_none_that_takes_much_longer_than_before() -> None:
    table = Table(SETS)
    table.free(ANNA)
    table.now_s = 10.0
    table.end(1)
    table.free(BEN, ANNA)
    table.now_s = 40.0
    table.end(2)
    table.do(sw.SetsAdded((("--lr", "9"),)))
    assert table.free(BEN) == [(4, BEN)], "anna has been at her second one for 30 s"


def test_a_laptop_whose_trial_is_over_waits_until_it_is_seen_free() -> None:
    table = Table()
    table.free(ANNA)
    table.do(sw.LaptopSeen(ANNA, there=True, free=True))  # seen before it looked busy
    table.end(1)
    assert table.trial(2).status == "waiting"
    assert table.free(ANNA) == [(2, ANNA)]


def test_repeats_have_the_same_seeds_for_every_set() -> None:
    table = Table(SETS[:2], repeat=2)
    found = [(trial.arguments[1], trial.seed) for trial in table.sweep.trials]
    assert found == [("1", 7), ("2", 7), ("1", 8), ("2", 8)]


def test_a_lost_laptops_trial_begins_again_elsewhere() -> None:
    table = Table()
    table.free(ANNA, BEN)
    table.do(sw.LaptopSeen(BEN, there=False, free=False))
    table.end(2, LOST, "killed")
    assert (table.trial(2).status, table.trial(2).problem) == ("waiting", LOST.problem)
    table.end(1)
    assert table.free(ANNA) == [(2, ANNA)]
    assert (table.trial(2).begun, table.trial(2).laptop) == (2, "anna")


def test_a_laptop_on_which_a_trial_was_lost_rests_first() -> None:
    table = Table()
    table.free(ANNA, BEN)
    table.end(2, LOST, "killed")
    assert SetTimer("rest", machine.REST_S) in table.effects
    assert table.free(BEN) == []
    table.do(TimerFired("rest"))
    assert table.trial(2).device == BEN
    assert table.trial(2).status == "running"


def test_a_script_that_fails_is_not_tried_elsewhere() -> None:
    table = Table()
    table.free(ANNA, BEN)
    problem = Problem(code="value-error", what="It raised.", fix="Mend it.")
    table.end(1, Failed(problem=problem), "script-error")
    assert (table.trial(1).status, table.trial(1).problem) == ("failed", problem)
    assert table.free(ANNA) == [(3, ANNA)], "the laptop goes on"


def test_a_trial_that_is_lost_again_and_again_fails() -> None:
    table = Table(SETS[:1])
    for _ in range(machine.MOST_BEGUN):
        assert table.free(ANNA) == [(1, ANNA)]
        table.end(1, LOST, "killed")
        table.do(TimerFired("rest"))
    assert (table.trial(1).status, table.sweep.phase) == ("failed", "finished")


def test_a_laptop_that_refuses_gets_no_more_trials_and_without_laptops_the_sweep_ends() -> None:
    table = Table()
    table.free(ANNA, BEN)
    table.end(2, REFUSED)
    table.do(TimerFired("rest"), sw.LaptopSeen(BEN, there=False, free=False))
    assert table.free(BEN) == []
    table.end(1, Stopped(by="anna"), "stopped")
    assert table.sweep.phase == "failed"
    assert table.sweep.problem is not None
    assert "Ben said no." in table.sweep.problem.what
    assert "stopped on anna" in table.sweep.problem.what


def test_a_laptop_whose_tandem_was_closed_takes_trials_again_when_it_is_back() -> None:
    table = Table()
    table.free(ANNA, BEN)
    table.end(2, Stopped(by="ben"), "stopped")
    table.do(TimerFired("rest"))
    assert table.free(BEN) == [], "its user stopped the trial"
    table.do(sw.LaptopSeen(BEN, there=False, free=False))
    assert table.free(BEN) == [(2, BEN)]


def test_a_start_that_is_refused_returns_the_trial() -> None:
    table = Table()
    new = table.do(sw.LaptopSeen(BEN, there=True, free=True))
    assert sw.StartTrial(1, BEN) in new
    problem = Problem(code="modules-missing", what="No pandas there.", fix="Install it.")
    table.do(sw.TrialNotStarted(1, problem))
    assert table.trial(1).status == "waiting"
    assert table.free(ANNA) == [(1, ANNA)]
    assert table.state.laptops[BEN].out == problem


def test_stop_ends_running_trials_and_begins_no_more() -> None:
    table = Table()
    table.free(ANNA, BEN)
    new = table.do(sw.StopPressed())
    assert [each for each in new if isinstance(each, sw.StopTrial)] == [sw.StopTrial(1), sw.StopTrial(2)]
    assert sw.StopTrial(2) in table.do(sw.StopPressed()), "again, with more force"
    table.end(1, Stopped(by="anna"), "stopped")
    table.end(2)
    assert table.sweep.phase == "stopped"
    assert [trial.status for trial in table.sweep.trials] == ["waiting", "finished", "waiting"]
    assert table.free(ANNA) == []


def test_a_trial_that_was_being_started_when_stop_came_is_stopped() -> None:
    table = Table()
    table.do(sw.LaptopSeen(ANNA, there=True, free=True))
    assert sw.StopTrial(1) not in table.do(sw.StopPressed()), "it has no run yet"
    assert sw.StopTrial(1) in table.do(sw.TrialStarted(1, RunId("run1")))


def test_without_any_laptop_a_sweep_gives_up_after_a_while_and_not_sooner() -> None:
    table = Table()
    assert "absent" in table.state.waits
    assert CancelTimer("absent") in table.do(sw.LaptopSeen(BEN, there=True, free=False)), "it is only busy"
    assert SetTimer("absent", machine.ABSENT_S) in table.do(sw.LaptopSeen(BEN, there=False, free=False))
    table.do(TimerFired("absent"))
    assert table.sweep.phase == "failed"
    assert table.sweep.problem is not None
    assert "anna and ben" in table.sweep.problem.what


def test_added_sets_are_more_trials_and_known_ones_are_not() -> None:
    table = Table(SETS[:2], repeat=2)
    table.do(sw.SetsAdded((SETS[1], ("--lr", "9"))))
    found = [(trial.number, trial.arguments[1], trial.seed) for trial in table.sweep.trials[4:]]
    assert found == [(5, "9", 7), (6, "9", 8)]
    assert table.sweep.spec.argument_sets == (*SETS[:2], ("--lr", "9"))


def test_a_sweep_goes_on_with_the_trials_that_have_no_result() -> None:
    table = Table()
    table.free(ANNA, BEN)
    table.end(1)
    again = machine.resumed(structs.replace(table.sweep, phase="stopped"))
    assert [trial.status for trial in again.trials] == ["finished", "waiting", "waiting"]
    assert again.phase == "running"


@pytest.mark.parametrize(("metric", "best"), [("val_loss", 1), ("val_accuracy", 2)])
def test_the_best_is_found_as_in_the_history(metric: str, best: int) -> None:
    table = Table()
    for number, value in ((1, 0.1), (2, 0.9), (3, 0.5)):
        table.free(ANNA)
        table.learn(number, **{"loss": 1.0 / value, metric: value})
        table.end(number)
    assert metric_of(table.sweep) == metric
    assert ranked(table.sweep)[0].number == best


def test_a_trial_whose_loss_became_nan_is_not_the_best() -> None:
    table = Table()
    table.free(ANNA)
    diverged = Diverged(value="NaN", epoch=1, step=0)
    epoch = EpochEnd(at_s=0.0, epoch=0, epochs=2, step=1, logs={"loss": 0.1}, seconds=1.0)
    table.do(
        sw.TrialEndedEpoch(1, epoch),
        sw.TrialEndedEpoch(1, structs.replace(epoch, epoch=1, logs={}, diverged=diverged)),
    )
    table.end(1)
    table.free(ANNA)
    table.learn(2, loss=0.5)
    table.end(2)
    assert [trial.number for trial in ranked(table.sweep)] == [2]


def test_models_beyond_the_best_are_deleted_once() -> None:
    table = Table(models=1)
    for number, loss in ((1, 0.3), (2, 0.1), (3, 0.2)):
        table.free(ANNA)
        table.learn(number, loss=loss)
        table.end(number)
    deleted = [each.run for each in table.effects if isinstance(each, sw.DeleteModel)]
    assert deleted == ["run1", "run3"]
    assert [trial.model for trial in table.sweep.trials] == [False, True, False]


def test_all_models_stay_where_that_is_wanted() -> None:
    table = Table(models=None)
    for number in (1, 2, 3):
        table.free(ANNA)
        table.learn(number, loss=0.1)
        table.end(number)
    assert not any(isinstance(each, sw.DeleteModel) for each in table.effects)
