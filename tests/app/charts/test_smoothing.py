"""Smoothing gives what TensorBoard's loop gives."""

import math

import numpy as np
import pytest

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


@pytest.mark.parametrize("weight", [0.0, 0.6, 0.99, 0.999])
@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 1000])
def test_it_is_tensorboards(weight: float, count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    assert Smoother(weight).next(values) == pytest.approx(tensorboard(values.tolist(), weight))


def test_it_goes_on_where_it_stopped() -> None:
    values = np.random.default_rng(1).normal(size=1000)
    smoother = Smoother(0.9)
    pieces = np.concatenate([smoother.next(part) for part in np.split(values, [1, 2, 200, 333, 900])])
    assert pieces == pytest.approx(tensorboard(values.tolist(), 0.9))


def test_what_is_no_number_passes_through_and_spoils_nothing() -> None:
    values = np.array([1.0, np.nan, 3.0, np.inf, 2.0])
    smoothed = Smoother(0.5).next(values)
    assert smoothed == pytest.approx(tensorboard(values.tolist(), 0.5), nan_ok=True)
    assert np.isfinite(smoothed[-1])


def test_a_constant_stays_what_it_is() -> None:
    assert Smoother(0.95).next(np.full(500, 0.25)) == pytest.approx(np.full(500, 0.25))
