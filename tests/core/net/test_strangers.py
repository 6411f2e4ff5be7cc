"""Strangers have few places."""

from core.net.strangers import AT_ONCE, PER_ADDRESS, Strangers


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


def test_a_caller_from_a_known_address_takes_no_strangers_place() -> None:
    strangers = Strangers()
    strangers.keep_places({"10.0.0.200"})
    assert all(strangers.admit("10.0.0.200") for _ in range(PER_ADDRESS))
    assert all(strangers.admit(f"10.0.0.{number}") for number in range(AT_ONCE))
    strangers.keep_places(())
    assert strangers.admit("10.0.1.1") is None
