"""Guessing is slowed down."""

from core.pairing.throttle import LONGEST_S, Pause


def failed(pause: Pause, times: int, now_s: float) -> Pause:
    for _ in range(times):
        pause = pause.after_failure(now_s)
    return pause


def test_two_failures_cost_nothing() -> None:
    assert failed(Pause(), 2, 100.0).left_s(100.0) == 0


def test_the_third_failure_pauses_for_a_minute() -> None:
    pause = failed(Pause(), 3, 100.0)
    assert pause.left_s(100.0) == 60
    assert pause.left_s(159.0) == 1
    assert pause.left_s(160.0) == 0


def test_each_further_pause_is_twice_as_long_up_to_an_hour() -> None:
    pause, now_s, lengths = Pause(), 0.0, []
    for _ in range(9):
        pause = failed(pause, 3, now_s)
        lengths.append(pause.left_s(now_s))
        now_s = pause.until_s
    assert lengths == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_an_hour_without_failures_forgives() -> None:
    pause = failed(failed(Pause(), 3, 0.0), 2, 60.0)
    late_s = 60.0 + LONGEST_S
    assert pause.after_failure(late_s - 1).left_s(late_s) > 0
    assert pause.after_failure(late_s).left_s(late_s) == 0
