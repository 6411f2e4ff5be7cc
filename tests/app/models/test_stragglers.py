"""Who waits for whom."""

from app.models.stragglers import Step, straggler, waiting_words
from core.ids import DeviceId

A, B, C = DeviceId("a"), DeviceId("b"), DeviceId("c")
NAMES = {A: "Ada", B: "Bob", C: "Cy"}


def test_the_one_who_never_waits_is_waited_for() -> None:
    steps = {A: Step(0.1, 0.05), B: Step(0.1, 0.0)}
    assert straggler(steps) == B
    assert waiting_words(steps, NAMES).startswith("Ada waits for Bob 50 % of each step.")


def test_a_little_waiting_is_not_worth_a_word() -> None:
    assert waiting_words({A: Step(0.1, 0.01), B: Step(0.1, 0.0)}, NAMES) == ""


def test_all_that_wait_alike_wait_for_nobody() -> None:
    # The network is slow then, not one of the laptops.
    assert straggler({A: Step(0.1, 0.05), B: Step(0.1, 0.05)}) is None


def test_several_wait_for_one() -> None:
    words = waiting_words({A: Step(1, 0.5), B: Step(1, 0.0), C: Step(1, 0.4)}, NAMES)
    assert "Ada waits for Bob 50 %" in words
    assert "Cy waits for Bob 40 %" in words


def test_alone_nobody_waits() -> None:
    assert straggler({A: Step(1, 0.9)}) is None
    assert straggler({}) is None


def test_a_step_that_took_no_time_is_no_waiting() -> None:
    assert Step(0.0, 0.0).waiting == 0.0
    assert Step(0.1, 9.0).waiting == 1.0
