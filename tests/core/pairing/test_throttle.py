"""Strangers have few places, and whoever is refused is counted."""

from core.pairing.throttle import (
    AT_ONCE,
    LONGEST_S,
    PER_ADDRESS,
    TELL_EVERY_S,
    TELL_HOST_EVERY_S,
    TOLD_AT_ONCE,
    Pause,
    Refusals,
    Strangers,
)


def test_one_address_has_four_places() -> None:
    strangers = Strangers()
    guests = [strangers.admit("10.0.0.1") for _ in range(PER_ADDRESS)]
    assert all(guests)
    assert strangers.admit("10.0.0.1") is None
    assert strangers.admit("::ffff:10.0.0.1") is None
    assert strangers.admit("10.0.0.2")


def test_all_addresses_together_have_sixteen() -> None:
    strangers = Strangers()
    guests = [strangers.admit(f"10.0.0.{number}") for number in range(AT_ONCE)]
    assert all(guests)
    assert strangers.admit("10.0.1.1") is None


def test_a_place_is_given_back_once() -> None:
    strangers = Strangers()
    guests = [strangers.admit("10.0.0.1") for _ in range(PER_ADDRESS)]
    assert guests[0]
    guests[0].leave()
    guests[0].leave()
    assert strangers.present == PER_ADDRESS - 1
    assert strangers.admit("10.0.0.1")
    assert strangers.admit("10.0.0.1") is None


def test_hosts_that_left_are_forgotten() -> None:
    strangers = Strangers()
    for number in range(1000):
        guest = strangers.admit(f"host{number}")
        assert guest
        guest.leave()
    assert strangers.present == 0
    assert not strangers._present


def test_strangers_that_take_every_place_leave_those_of_known_addresses() -> None:
    strangers = Strangers()
    strangers.keep_places({"10.0.0.200", "fe80::1%wlp2s0"})
    assert all(strangers.admit(f"10.0.0.{number % 5}") for number in range(AT_ONCE))
    assert strangers.admit("10.0.1.1") is None
    for known in ("::ffff:10.0.0.200", "fe80::1%wlp2s0"):
        guests = [strangers.admit(known) for _ in range(PER_ADDRESS)]
        assert all(guests)
        assert strangers.admit(known) is None
    assert strangers.admit("fe80::1%eth0") is None, "the same number in another network is another laptop"


def test_whoever_comes_from_a_known_address_takes_no_strangers_place() -> None:
    strangers = Strangers()
    strangers.keep_places({"10.0.0.200"})
    assert all(strangers.admit("10.0.0.200") for _ in range(PER_ADDRESS))
    assert all(strangers.admit(f"10.0.0.{number}") for number in range(AT_ONCE))
    strangers.keep_places(())
    assert strangers.admit("10.0.1.1") is None


def test_a_flood_is_counted_and_told_at_a_bounded_rate() -> None:
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
