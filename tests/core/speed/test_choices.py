"""What other ways to train would take, by the measurements of exact steps."""

import pytest
from msgspec.structs import replace

from core.speed.choices import choices_s
from core.vocabulary.progress import Expectation

NUMBERS = 5_000_000
OLDER = Expectation(
    alone_s=(0.05, 0.05),
    step_s=1.83,
    wire_s=1.66,
    wire_bytes=4 * NUMBERS,
    shares=(64, 64),
)
"""Dense layers at 100 Mbit, measured by a Tandem that does not tell how long members compute."""
MEASURED = replace(OLDER, computing_s=(0.04, 0.05))


def test_what_waits_in_queues_is_no_computing_that_stays_with_rare_meetings() -> None:
    assert choices_s(MEASURED, 2).rare == pytest.approx(0.04 * 1.1, rel=0.05)
    assert choices_s(OLDER, 2).rare > 0.17


def test_fewer_bits_shorten_what_is_not_computing() -> None:
    assert choices_s(MEASURED, 2).narrow == pytest.approx(0.04 + 1.79 / 2)


def test_numbers_in_8_bits_are_computed_too() -> None:
    for members, sent in ((2, 4 * NUMBERS), (4, 6 * NUMBERS)):
        expectation = replace(MEASURED, wire_bytes=sent)
        coding_s = choices_s(expectation, members).narrowest - 0.04 - 1.79 / 8 * members
        assert 0.01 < coding_s / members < 0.1, "of the same numbers, whatever each sends"


def test_twice_the_rows_take_less_than_twice_as_long() -> None:
    assert choices_s(MEASURED, 2).larger == pytest.approx(0.05 + 1.79)


def test_steps_that_came_out_shorter_than_computing_wait_for_nothing() -> None:
    fast = replace(MEASURED, step_s=0.03, wire_s=0.0)
    assert choices_s(fast, 2).narrow == 0.04
