"""How the times of sweeps become rows."""

from bench import sweep


def test_two_laptops_are_compared_with_one_and_unequal_ones_with_their_sum() -> None:
    found = sweep.rows(10.0, 66.0, 5.0, 15.0, 48.0)
    assert [row.kept for row in found if row.kept is not None] == [True, True]
    ratio = next(row for row in found if row.what == "on two, 20 Mbit ÷ on one")
    assert ratio.value == 66.0 / 120.0
    assert found[-1].value == 12 / 48.0 / (1 / 5.0 + 1 / 15.0)
    slow = sweep.rows(10.0, 72.0, 5.0, 15.0, 60.0)
    assert [row.kept for row in slow if row.kept is not None] == [False, False]
