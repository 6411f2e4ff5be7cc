from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.history.metrics_file import Thinned


def thin(many: int, most: int) -> tuple[int, ...]:
    thinned: Thinned[int] = Thinned(most)
    for number in range(many):
        thinned.add(number)
    return thinned.items


def test_few_points_stay_as_they_are() -> None:
    assert thin(5, 10) == (0, 1, 2, 3, 4)
    assert thin(0, 10) == ()


def test_one_point_cannot_show_a_line() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Thinned(1)


@given(many=st.integers(1, 3000), most=st.integers(2, 50))
def test_ends_stay_order_stays_and_no_gap_is_much_wider_than_the_others(many: int, most: int) -> None:
    kept = thin(many, most)
    assert len(kept) <= most
    assert kept[0] == 0
    assert kept[-1] == many - 1
    assert list(kept) == sorted(set(kept))
    gaps = {after - before for before, after in pairwise(kept[:-1])}
    assert len(gaps) <= 1
