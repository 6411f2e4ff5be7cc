import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cluster.costs import Cost, fastest_rows, line, together_s

seconds = st.floats(0.0, 1.0).map(lambda value: round(value, 4))
costs = st.builds(Cost, fixed_s=seconds, row_s=seconds, most=st.none() | st.integers(0, 300))


def test_three_times_as_fast_gets_three_times_the_rows() -> None:
    assert fastest_rows(64, [Cost(0.0, 0.001), Cost(0.0, 0.003)]) == (48, 16)


def test_a_fixed_part_counts_as_well() -> None:
    assert fastest_rows(60, [Cost(0.02, 0.001), Cost(0.0, 0.001)]) == (20, 40)


def test_a_hopelessly_slow_member_gets_no_row() -> None:
    assert fastest_rows(32, [Cost(0.0, 0.001), Cost(1.0, 0.5)]) == (32, 0)


def test_no_member_gets_more_than_it_can_hold() -> None:
    assert fastest_rows(64, [Cost(0.0, 0.001, most=40), Cost(0.0, 0.01)]) == (40, 24)
    with pytest.raises(ValueError, match="do not fit"):
        fastest_rows(64, [Cost(0.0, 0.001, most=40), Cost(0.0, 0.01, most=20)])


@given(rows=st.integers(0, 10_000), members=st.lists(costs, min_size=1, max_size=6))
def test_all_rows_are_given_and_limits_hold(rows: int, members: list[Cost]) -> None:
    if sum(rows if cost.most is None else cost.most for cost in members) < rows:
        with pytest.raises(ValueError, match="do not fit"):
            fastest_rows(rows, members)
        return
    found = fastest_rows(rows, members)
    assert sum(found) == rows
    assert all(
        own >= 0 and (cost.most is None or own <= cost.most) for own, cost in zip(found, members, strict=True)
    )


@given(rows=st.integers(0, 12), members=st.lists(costs, min_size=1, max_size=3))
def test_no_other_rows_are_done_sooner(rows: int, members: list[Cost]) -> None:
    possible = [
        split
        for split in itertools.product(range(rows + 1), repeat=len(members))
        if sum(split) == rows
        and all(cost.most is None or own <= cost.most for own, cost in zip(split, members, strict=True))
    ]
    if possible:
        best_s = min(together_s(members, split) for split in possible)
        assert together_s(members, fastest_rows(rows, members)) <= best_s * (1 + 1e-9)


@given(rows=st.integers(1, 100), fixed_s=seconds, row_s=seconds)
def test_a_line_goes_through_what_was_measured(rows: int, fixed_s: float, row_s: float) -> None:
    cost, few, many = Cost(fixed_s, row_s), rows, 4 * rows
    found = line(few, cost.of(few), many, cost.of(many))
    assert found.of(few) == pytest.approx(cost.of(few), abs=1e-9)
    assert found.of(many) == pytest.approx(cost.of(many), abs=1e-9)


def test_no_measurement_makes_a_part_negative() -> None:
    assert line(8, 0.02, 32, 0.01) == Cost(0.01, 0.0)  # more rows took less: the rows cost nothing
    assert line(8, 0.001, 32, 0.032) == Cost(0.0, 0.001)  # more than proportional
    assert line(1, 0.5, 1, 0.5) == Cost(0.0, 0.5)


def test_costs_of_nothing_give_any_answer_that_adds_up() -> None:
    free = [Cost(0.0, 0.0)] * 3
    for rows in (0, 1, 7):
        found = fastest_rows(rows, free)
        assert sum(found) == rows and min(found) >= 0


def test_a_slower_member_is_slower_in_both_parts_and_holds_as_much() -> None:
    assert Cost(0.5, 0.25, most=8).slower(2.0) == Cost(1.0, 0.5, most=8)


def test_a_member_without_rows_takes_the_time_of_one() -> None:
    assert Cost(0.5, 0.25).of(0) == Cost(0.5, 0.25).of(1) == 0.75
    assert Cost(0.5, 0.25).of(2) == 1.0
