"""What members that have left had of each batch."""

from __future__ import annotations

from core.cluster.left import LeftShares


def test_while_all_are_there_shares_are_as_they_are() -> None:
    assert LeftShares().among((40, 24, 0)) == (40, 24, 0)


def test_who_left_keeps_its_part_compared_with_the_others_whose_shares_change() -> None:
    left = LeftShares()
    assert left.leave((20, 20, 24), there=(0, 2)) == (20, 0, 24)
    assert left.among((20, 0, 24)) == (20, 20, 24)
    assert left.among((29, 0, 35)) == (29, 29, 35), "20 compared with 44"
    left.leave((29, 0, 35), there=(0,))
    assert left.among((29, 0, 0)) == (29, 29, 35)
    assert left.among((64, 0, 0)) == (64, 64, 77)


def test_nobody_keeps_nothing() -> None:
    left = LeftShares()
    left.leave((64, 0), there=(0,))
    assert left.among((64, 0)) == (64, 1)
    left = LeftShares()
    assert left.leave((0, 64), there=(0,)) == (1, 0)
    assert left.among((1, 0)) == (1, 64)
