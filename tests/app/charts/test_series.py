"""The min/max pyramid of a curve."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts.series import Series


def made(y: np.ndarray, pieces: int = 1) -> Series:
    series = Series()
    for part in np.array_split(np.arange(len(y)), pieces):
        series.extend(part.astype(float), y[part])
    return series


def test_few_points_are_drawn_as_they_are() -> None:
    drawn = made(np.array([3.0, 1.0, 2.0])).drawn(0, 2, 100)
    assert not drawn.dense
    assert drawn.x.tolist() == [0, 1, 2]
    assert drawn.middle.tolist() == [3, 1, 2]


def test_a_million_points_are_drawn_by_one_extent_a_column() -> None:
    y = np.sin(np.arange(1_000_000) / 1000)
    drawn = made(y).drawn(0, len(y), 800)
    assert drawn.dense
    assert 250 < len(drawn.x) <= 801
    assert drawn.high.max() == y.max()
    assert drawn.low.min() == y.min()


def test_a_single_peak_among_a_million_is_not_lost() -> None:
    y = np.zeros(1_000_000)
    y[777_777] = 5.0
    drawn = made(y, pieces=7).drawn(0, len(y), 500)
    assert drawn.high.max() == 5.0
    assert abs(drawn.x[drawn.high.argmax()] - 777_777) < len(y) / 100


def test_values_that_are_no_number_leave_a_gap_and_hide_nothing() -> None:
    y = np.full(100_000, np.nan)
    y[:50_000] = 1.0
    y[10] = np.inf
    drawn = made(y).drawn(0, len(y), 300)
    assert np.nanmax(drawn.high) == 1.0
    assert np.isnan(drawn.high[drawn.x > 51_000]).all()


def test_a_part_of_the_curve_is_drawn_with_one_point_beyond_each_end() -> None:
    drawn = made(np.arange(1000.0)).drawn(100, 200, 800)
    assert drawn.x[0] == 99
    assert drawn.x[-1] == 201


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 9_000),
    pieces=st.integers(1, 12),
    columns=st.integers(1, 400),
    bounds=st.tuples(st.floats(-10, 9_500), st.floats(-10, 9_500)),
)
def test_however_it_grew_no_extreme_of_what_is_seen_is_lost(
    count: int, pieces: int, columns: int, bounds: tuple[float, float]
) -> None:
    y = np.random.default_rng(count).normal(size=count)
    left, right = sorted(bounds)
    drawn = made(y, pieces).drawn(left, right, columns)
    assert (np.diff(drawn.x) >= 0).all()
    assert len(drawn.x) == len(drawn.low) == len(drawn.high)
    at = np.arange(count)
    seen = y[(at >= left) & (at <= right)]
    if len(seen):
        assert drawn.low.min() <= seen.min()
        assert drawn.high.max() >= seen.max()
    assert {*drawn.low, *drawn.high} <= set(y)
