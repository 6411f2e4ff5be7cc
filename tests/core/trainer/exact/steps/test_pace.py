import pytest

from core.trainer.exact.steps.pace import PortionPace, without_call


def test_portions_grow_to_the_reporting_interval_and_no_further() -> None:
    pace = PortionPace(target_s=0.1)
    sizes = []
    for _ in range(6):
        sizes.append(pace.steps(1))
        pace.measured(0.001)
    assert sizes == [1, 4, 16, 64, 100, 100]


def test_portions_are_whole_executions() -> None:
    pace = PortionPace(target_s=0.1)
    pace.measured(0.001)
    assert pace.steps(3) == 6


def test_a_slow_step_goes_alone() -> None:
    pace = PortionPace(target_s=0.1)
    pace.measured(0.001)
    pace.measured(0.4)
    assert pace.steps(1) == 1


def test_a_callback_of_every_batch_keeps_keras_own_portions() -> None:
    pace = PortionPace()
    pace.measured(0.0001)
    pace.each_batch = True
    assert pace.steps(2) == 2


def test_a_brief_portion_is_of_a_few_steps_and_does_not_slow_the_others() -> None:
    pace = PortionPace(target_s=0.1)
    for _ in range(6):
        pace.measured(0.001)
    pace.brief = True
    assert (pace.steps(1), pace.steps(2)) == (3, 4)
    pace.measured(0.001)
    pace.brief = False
    assert pace.steps(1) == 100


def test_a_step_that_was_not_measured_changes_nothing() -> None:
    pace = PortionPace()
    pace.measured(0.0)
    assert pace.steps(1) == 1


def test_a_small_rest_joins_the_last_portion() -> None:
    pace = PortionPace(target_s=0.1)
    for _ in range(6):
        pace.measured(0.001)
    assert [pace.steps(1, left) for left in (300, 150, 149, 100, 7)] == [100, 100, 149, 100, 7]
    assert (pace.steps(3, 150), pace.steps(3, 160)) == (150, 102)
    pace.brief = True
    assert pace.steps(1, 4) == 3
    pace.each_batch = True
    assert (pace.steps(2, 3), pace.steps(2, 1)) == (2, 1)


def test_a_steps_own_time_is_that_without_its_part_of_a_call() -> None:
    """A call takes 4 ms, and each of its steps 3 ms."""
    assert without_call(0.007, 0.0034, 10) == pytest.approx((0.003, 0.004))
    assert without_call(0.4, 0.4, 1) == (0.4, 0.0), "nothing is known of it"
    assert without_call(0.003, 0.0034, 10) == (0.0034, 0.0), "the first step was quicker"
    step_s, call_s = without_call(1.0, 0.0034, 10)
    assert step_s == pytest.approx(0.0017), "a disturbed first step does not make it nothing"
    assert call_s == pytest.approx(0.017)
