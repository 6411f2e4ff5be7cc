"""Smoothing evenly spaced points matches TensorBoard's loop; for others it respects distance."""

import math

import numpy as np
import pytest

from app.charts.series import Floats
from app.charts.smoothing import Smoother


def tensorboard(values: list[float], weight: float) -> list[float]:
    last, count, smoothed = 0.0, 0, []
    for value in values:
        if not math.isfinite(value):
            smoothed.append(value)
            continue
        last = last * weight + (1 - weight) * value
        count += 1
        smoothed.append(last / (1 - weight**count))
    return smoothed


def smoothed(smoother: Smoother, values: Floats) -> Floats:
    """Smooths points one unit apart."""
    return smoother.next(np.arange(float(len(values))), values)


@pytest.mark.parametrize("weight", [0.0, 0.6, 0.99, 0.999])
@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 1000])
def test_it_is_tensorboards(weight: float, count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    assert smoothed(Smoother(weight), values) == pytest.approx(tensorboard(values.tolist(), weight))


def test_it_goes_on_where_it_stopped() -> None:
    values = np.random.default_rng(1).normal(size=1000)
    smoother = Smoother(0.9)
    at = np.arange(1000.0)
    bounds = [1, 2, 200, 333, 900]
    parts = zip(np.split(at, bounds), np.split(values, bounds), strict=True)
    pieces = np.concatenate([smoother.next(x, y) for x, y in parts])
    assert pieces == pytest.approx(tensorboard(values.tolist(), 0.9))


def test_what_is_no_number_passes_through_and_spoils_nothing() -> None:
    values = np.array([1.0, np.nan, 3.0, np.inf, 2.0])
    made = smoothed(Smoother(0.5), values)
    counted = by_distance([0.0, 2.0, 4.0], [1.0, 3.0, 2.0], 0.5, 1.0)
    assert made[np.isfinite(values)] == pytest.approx(counted)
    assert math.isnan(made[1]) and math.isinf(made[3])
    assert np.isfinite(made[-1])


def test_a_constant_stays_what_it_is() -> None:
    assert smoothed(Smoother(0.95), np.full(500, 0.25)) == pytest.approx(np.full(500, 0.25))


def by_distance(x: list[float], y: list[float], weight: float, unit: float) -> list[float]:
    """The definition, point by point: each earlier point weighs weight ** (distance / unit)."""
    return [
        sum(weight ** ((x[i] - x[j]) / unit) * y[j] for j in range(i + 1))
        / sum(weight ** ((x[i] - x[j]) / unit) for j in range(i + 1))
        for i in range(len(x))
    ]


@pytest.mark.parametrize("weight", [0.3, 0.6, 0.99])
def test_a_point_far_off_counts_less(weight: float) -> None:
    random = np.random.default_rng(3)
    x, y = np.cumsum(random.exponential(5.0, size=200)), random.normal(size=200)
    assert Smoother(weight, 5.0).next(x, y) == pytest.approx(by_distance(x.tolist(), y.tolist(), weight, 5.0))


def test_after_a_thinned_stretch_the_line_is_near_the_values() -> None:
    """Dense at first, then one point in a hundred: the many early points do not hold back the last values."""
    x = np.concatenate((np.arange(100.0), np.arange(100.0, 2_000.0, 100.0)))
    y = 0.8 + 1.5 * np.exp(-x / 40)
    made = Smoother(0.9, float(x[-1] / (len(x) - 1))).next(x, y)
    by_count = tensorboard(y.tolist(), 0.9)
    assert abs(made[-1] - y[-1]) < 0.01 < abs(by_count[-1] - y[-1])


def test_a_pause_as_long_as_one_likes_overflows_nothing() -> None:
    x = np.array([0.0, 1.0, 1e9, 1e9, 1e9 + 1, 5e17])
    made = Smoother(0.5).next(x, np.array([1.0, 3.0, 7.0, 9.0, 8.0, 2.0]))
    assert made == pytest.approx([1.0, 7 / 3, 7.0, 8.0, 8.0, 2.0])


def test_a_million_points_take_a_blink() -> None:
    x = np.arange(1e6)
    assert Smoother(0.01).next(x, x)[-1] == pytest.approx(x[-1], abs=0.02)
