"""What counts as a kept promise."""

import math

from bench.result import Result, Row, interval, median, ratios, spread


def test_a_limit_is_kept_up_to_its_own_value() -> None:
    assert Row(what="x", value=1.5, limit=1.5).kept
    assert not Row(what="x", value=1.51, limit=1.5).kept
    assert Row(what="x", value=1.0, limit=1.0, at="least").kept
    assert not Row(what="x", value=0.99, limit=1.0, at="least").kept


def test_without_a_limit_nothing_is_promised() -> None:
    assert Row(what="x", value=9e9).kept is None
    assert Result(name="n", title="t", rows=(Row(what="x", value=9e9),)).ok


def test_no_number_keeps_no_promise() -> None:
    for at in ("most", "least"):
        row = Row(what="x", value=math.nan, limit=1.0, at=at)
        assert row.kept is False
        assert not Result(name="n", title="t", rows=(row,)).ok


def test_what_could_not_be_measured_is_not_ok() -> None:
    assert not Result(name="n", title="t", failure="TimeoutError").ok


def test_a_ratio_is_taken_round_by_round() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]
    assert median(ratios([2.0, 9.0, 1.0], [1.0, 3.0, 1.0])) == 2.0


def test_the_spread_says_from_where_to_where() -> None:
    assert spread([3.0, 1.0, 2.0]) == "3 rounds, 1.00 to 3.00"
    assert spread([]) == "none"


def test_an_interval_of_the_median_goes_by_the_order_of_many_rounds() -> None:
    assert interval([float(number) for number in range(1, 101)], 0) == (
        "100 rounds, median with 95 %: 40 to 61"
    )
    assert interval([1.0, 2.0, 3.0]) == "too few rounds for an interval"
