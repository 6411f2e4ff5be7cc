"""How the times of sweeps become rows."""

from bench import sweep


def test_two_laptops_are_compared_with_one_and_unequal_ones_with_their_sum() -> None:
    found = sweep.rows(10.0, {240: 66.0, 20: 72.0}, 30.0, 96.0)
    kept = {row.what: row.kept for row in found if row.kept is not None}
    assert list(kept.values()) == [True, False, True]
    ratio = next(row for row in found if row.what == "on two, 240 Mbit ÷ on one")
    assert ratio.value == 66.0 / 120.0
    assert found[-1].value == 12 / 96.0 / (1 / 10.0 + 1 / 30.0)
