"""Refusals are counted, and a caller that fails too often has to wait."""

from core.pairing.throttle import (
    LONGEST_S,
    TELL_EVERY_S,
    TELL_HOST_EVERY_S,
    TOLD_AT_ONCE,
    Refusals,
    RetryDelay,
)


def test_a_flood_is_counted_and_logged_at_a_bounded_rate() -> None:
    now_s, lines = [0.0], list[str]()
    refusals = Refusals(lambda: now_s[0], lines.append)
    for number in range(1000):
        now_s[0] = number * 0.05
        refusals.add(f"192.0.2.{number}", "garbage")
    assert refusals.total == refusals.by_reason["garbage"] == 1000
    assert TOLD_AT_ONCE < len(lines) <= TOLD_AT_ONCE + int(50 // TELL_EVERY_S)
    assert len(refusals._hosts) < 1000
    assert "192.0.2.0" in lines[0]
    assert "garbage" in lines[0]


def test_each_host_is_named_while_others_flood() -> None:
    now_s, lines = [0.0], list[str]()
    refusals = Refusals(lambda: now_s[0], lines.append)
    for number in range(6000):
        now_s[0] = number * 0.05
        refusals.add(f"192.0.2.{number % 5}", "too many strangers at once")
        if number == 3000:
            refusals.add("198.51.100.7", "wrong-certificate")
    (line,) = [line for line in lines if "198.51.100.7" in line]
    assert "wrong-certificate" in line and "(1 of " in line
    assert len(lines) == 1 + 5 * int(300 // TELL_HOST_EVERY_S)


def failed(pause: RetryDelay, times: int, now_s: float) -> RetryDelay:
    for _ in range(times):
        pause = pause.after_failure(now_s)
    return pause


def test_two_failures_cost_nothing() -> None:
    assert failed(RetryDelay(), 2, 100.0).left_s(100.0) == 0


def test_the_third_failure_pauses_for_a_minute() -> None:
    pause = failed(RetryDelay(), 3, 100.0)
    assert pause.left_s(100.0) == 60
    assert pause.left_s(159.0) == 1
    assert pause.left_s(160.0) == 0


def test_each_further_pause_is_twice_as_long_up_to_an_hour() -> None:
    pause, now_s, lengths = RetryDelay(), 0.0, []
    for _ in range(9):
        pause = failed(pause, 3, now_s)
        lengths.append(pause.left_s(now_s))
        now_s = pause.until_s
    assert lengths == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_an_hour_without_failures_forgives() -> None:
    pause = failed(failed(RetryDelay(), 3, 0.0), 2, 60.0)
    late_s = 60.0 + LONGEST_S
    assert pause.after_failure(late_s - 1).left_s(late_s) > 0
    assert pause.after_failure(late_s).left_s(late_s) == 0
