import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.vocabulary.plan import split_rows

any_shares = (
    st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(lambda shares: sum(shares) > 0).map(tuple)
)


@pytest.mark.parametrize("shares", [(32, 32), (48, 16), (40, 16, 8), (63, 1)])
def test_a_full_batch_is_split_by_the_shares_themselves(shares: tuple[int, ...]) -> None:
    parts = split_rows(sum(shares), shares)
    assert tuple(end - begin for begin, end in parts) == shares


def test_one_row_goes_to_one_member() -> None:
    assert split_rows(1, (48, 16)) == ((0, 1), (1, 1))
    assert split_rows(1, (16, 48)) == ((0, 0), (0, 1))


def test_a_member_with_no_share_gets_no_row() -> None:
    assert split_rows(10, (3, 0, 2)) == ((0, 6), (6, 6), (6, 10))


@given(rows=st.integers(0, 10_000), shares=any_shares)
def test_the_parts_cover_every_row_once_in_rank_order(rows: int, shares: tuple[int, ...]) -> None:
    parts = split_rows(rows, shares)
    assert len(parts) == len(shares)
    assert parts[0][0] == 0 and parts[-1][1] == rows
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(parts))
    assert all(begin <= end for begin, end in parts)


@given(rows=st.integers(0, 10_000), shares=any_shares)
def test_no_part_is_more_than_a_row_from_its_share(rows: int, shares: tuple[int, ...]) -> None:
    for (begin, end), share in zip(split_rows(rows, shares), shares, strict=True):
        assert abs((end - begin) - rows * share / sum(shares)) <= 1


@pytest.mark.parametrize("shares", [(), (0, 0), (5, -1)])
def test_impossible_shares_are_refused(shares: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="shares must be"):
        split_rows(10, shares)


def test_negative_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        split_rows(-1, (1, 1))
