"""How expectations and outcomes become rows."""

import pytest

from bench import prediction
from bench.result import foreseen
from core.vocabulary.progress import Expectation

EXACT = Expectation(
    alone_s=(0.1, 0.1),
    step_s=0.2,
    step_range_s=(0.2 / 1.1, 0.2 * 1.1),
    wire_s=0.14,
    wire_bytes=20_000_000,
    shares=(32, 32),
)


def test_an_expectation_may_be_off_by_a_fifth_in_either_direction() -> None:
    for came_out_s, kept in ((0.84, True), (0.82, False), (1.24, True), (1.26, False)):
        assert foreseen("expected", 1.0, (1.0, 1.0), came_out_s).kept is kept
    assert foreseen("expected", 2.0, (2.0, 2.0), 1.0).value == pytest.approx(1.0)


def test_an_expectation_may_be_off_as_far_as_the_range_that_was_shown() -> None:
    for came_out_s, kept in ((0.51, True), (0.49, False), (1.49, True), (1.51, False)):
        assert foreseen("expected", 1.0, (0.5, 1.5), came_out_s).kept is kept


def test_each_choice_is_compared_with_what_the_exact_run_said_of_it() -> None:
    """0.06 s of computing, 0.14 s on the wire, and 0.07 s for codes in 8 bits."""
    found = {"exact": (EXACT, 0.2), "int8": (EXACT, 0.165), "rare": (EXACT, 0.066)}
    rows = {row.what: row for row in prediction.rows("net", found, EXACT)}
    assert rows["net, exact: expected, off by"].value == pytest.approx(0.0)
    assert rows["net, 8-bit numbers: expected, off by"].kept is False, "what that run itself expected"
    assert rows["net, 8-bit numbers: said by the exact run, off by"].value == pytest.approx(0.0, abs=0.05)
    assert rows["net, rare: said by the exact run, off by"].value == pytest.approx(0.0, abs=0.01)
    half = rows["net, exact: said by a run with half the rows, off by"]
    assert half.value == pytest.approx(0.3), "twice the rows take 0.26 s"
    assert half.limit == pytest.approx(1.1 * 1.15 - 1)
