"""A run's few large numbers."""

import pytest
from msgspec.structs import replace

from app.models.headline import ALONE, Figure, brief, figures, results, speed_up
from app.models.paces import Pace
from core.vocabulary import events as ev
from core.vocabulary.progress import EpochPart, Expectation, Settled, Summary
from core.vocabulary.state import Run, State, apply
from core.vocabulary.waits import Cause, WaitsFor
from tests.app import world
from tests.core.fake_node import ME, OTHER, started


def run_after(*events: ev.Event) -> Run:
    state = State()
    for event in (started(), *world.linked(), *world.begun(), *events):
        state = apply(state, event)
    assert state.run is not None
    return state.run


def test_before_the_first_step_there_are_dashes() -> None:
    assert [figure.value for figure in figures(run_after(), ME)] == ["–"] * 4


def test_loss_and_metric_stand_with_their_validation() -> None:
    run = run_after(world.epoch_ended(ME, 0, 0.5), world.progressed(ME, world.progress(45)))
    loss, accuracy = figures(run, ME)[:2]
    assert loss[:3] == ("Loss, this epoch", "0.500", "validation 0.550")
    assert accuracy[:3] == ("Accuracy, this epoch", "0.833", "validation 0.821")
    assert "this epoch so far" in loss.hint and "curve ends with the mean of the newest steps" in loss.hint


def test_a_loss_says_over_which_steps_it_is() -> None:
    """It is Keras', over the whole epoch: the curve beside it ends elsewhere."""
    whole, part = replace(world.SUMMARY, part=None), EpochPart(steps=5, steps_in_epoch=23)
    plan = world.plan()
    assert whole.epochs > 0 and results(whole, plan, ME)[0].name == "Loss, last epoch"
    assert results(replace(whole, epochs=0, part=part), plan, ME)[0].name == "Loss, this epoch"
    assert results(replace(whole, epochs=0), plan, ME)[0].name == "Loss", "no epochs are known"
    ended = run_after(
        world.epoch_ended(ME, 0, 0.5), world.progressed(ME, replace(world.progress(23), logs={}))
    )
    assert figures(ended, ME)[0].name == "Loss, last epoch", "the next one has no number yet"
    loop = replace(world.progress(4), epochs=0)
    assert figures(run_after(world.progressed(ME, loop)), ME)[0].name == "Loss"


def test_a_learning_rate_is_no_metric() -> None:
    step = replace(world.progress(4), logs={"learning_rate": 0.1, "loss": 1.0, "auc": 0.7})
    assert figures(run_after(world.progressed(ME, step)), ME)[1][:2] == ("Auc, this epoch", "0.700")


def test_speed_is_that_of_this_laptop_alone() -> None:
    step = world.progressed(ME, replace(world.progress(4), step_s=0.1))
    run = run_after(world.measured(), step)
    assert speed_up(run, ME) == pytest.approx(1.0)
    assert speed_up(run, OTHER) == pytest.approx(3.0)
    assert figures(run, ME)[3] == Figure("Speed", "No faster", ALONE, "warning")
    assert figures(run, OTHER)[3] == Figure("Speed", "3.0×", "as fast as this laptop alone")


def test_steps_too_small_to_share_are_not_compared() -> None:
    tiny = Expectation(alone_s=(0.004, 0.006), step_s=0.03, wire_s=0.02, wire_bytes=150_000, shares=(32, 32))
    step = world.progressed(ME, replace(world.progress(4), step_s=0.03))
    run = run_after(world.measured(tiny), step)
    assert figures(run, ME)[3] == Figure("Speed", "640", "samples/s; steps too small")
    summary = Summary(expectation=tiny, settled=Settled(step_s=0.03), samples_s=2133.0)
    assert results(summary, run.plan, ME)[3] == Figure("Speed", "2,133", "samples/s; steps too small")
    faster = replace(summary, settled=Settled(step_s=0.002))
    assert results(faster, run.plan, ME)[3].value == "2.0×"
    large = replace(summary, expectation=replace(tiny, wire_bytes=9_000_000))
    assert results(large, run.plan, ME)[3].value == "7.5× slower"


@pytest.mark.parametrize(("cause", "stands"), [("away", True), ("silent", True), ("wire", False)])
def test_while_a_laptop_is_away_speed_and_time_left_are_those_of_now(cause: Cause, stands: bool) -> None:
    waits = (WaitsFor(device=OTHER, cause=cause, lasted_s=12.0),)
    step = world.progressed(ME, world.progress(4))
    run = run_after(world.measured(), step, ev.WaitingChanged(run=world.RUN, waits=waits))
    left, speed = figures(run, ME, [Pace(0.1, 0.1)] * 9)[2:]
    assert (left.value == "–", speed.value == "0") == (stands, stands)


@pytest.mark.parametrize("step_s", [0.0, -1.0, float("nan"), float("inf"), 1e-300])
def test_a_step_that_cannot_be_gives_no_speed(step_s: float) -> None:
    run = run_after(world.measured(), world.progressed(ME, replace(world.progress(4), step_s=step_s)))
    assert speed_up(run, ME) is None


def test_the_time_left_is_unknown_until_there_are_enough_reports() -> None:
    run = run_after(world.progressed(ME, world.progress(45)))
    for count, words in ((5, "–"), (6, "0:14")):
        assert figures(run, ME, [Pace(0.1, 0.1)] * count)[2] == Figure("Time left", words, "epoch 2 of 8")


def test_numbers_are_as_short_as_one_reads_them() -> None:
    given = [0.01234, 1.5, 45.678, 456.78, 6789.0, 0.0, 1e-5, 1e9, float("nan"), -0.5]
    assert list(map(brief, given)) == [
        *("0.012", "1.500", "45.68", "456.8", "6,789", "0.000", "1.00e-05", "1.00e+09", "nan", "-0.500")
    ]
