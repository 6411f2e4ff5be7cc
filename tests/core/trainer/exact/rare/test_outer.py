"""The outer step: the mean of the members' differences, with momentum."""

from __future__ import annotations

import numpy as np
import pytest

from core.trainer.exact.rare import outer
from core.trainer.exact.rare.codec import Floats


def floats(*values: float) -> Floats:
    return np.array(values, np.float32)


def test_a_mean_counts_each_member_by_its_share() -> None:
    assert outer.mean([floats(1, 4), floats(3, 0)], [3, 1]) == pytest.approx([1.5, 3.0])
    assert outer.mean([floats(1), floats(5), floats(3)], [1, 0, 1]) == pytest.approx([2.0])


def test_the_mean_of_equal_arrays_has_the_same_bits() -> None:
    value = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    assert np.array_equal(outer.mean([value] * 3, [5, 3, 7]), value)


def test_a_mean_of_other_arrays_or_weights_shows_in_its_marks() -> None:
    drawn = np.random.default_rng(3)
    arrays = [drawn.normal(size=1000).astype(np.float32) for _ in range(3)]
    of, shares = np.stack([outer.marks(array) for array in arrays]), [5, 3, 1]
    right = outer.mean(arrays, shares)
    assert outer.is_mean(outer.marks(right), of, shares)
    one = right.copy()
    one[70] *= 1.01
    wrong = [outer.mean(arrays, [1, 1, 1]), outer.mean(arrays[::-1], shares), 1.0001 * right, one]
    assert not any(outer.is_mean(outer.marks(each), of, shares) for each in wrong)


def test_steps_are_nesterovs() -> None:
    weights, momentum = outer.stepped(floats(1), floats(0), floats(2))
    assert weights == pytest.approx([1 + 0.7 * (2 + 0.5 * 2)])
    assert momentum == pytest.approx([2])
    weights, momentum = outer.stepped(weights, momentum, floats(2))
    assert momentum == pytest.approx([3])
    assert weights == pytest.approx([3.1 + 0.7 * (2 + 0.5 * 3)])
    assert weights.dtype == momentum.dtype == np.float32


def test_long_arrays_are_computed_in_parts_that_join() -> None:
    drawn = np.random.default_rng(4)
    one, other, third = (drawn.normal(size=600_001).astype(np.float32) for _ in range(3))
    assert np.array_equal(outer.mean([one, other], [1, 1]), one + (other - one) * np.float32(0.5))
    momentum = np.float32(0.5) * other + third
    moved = one + np.float32(0.7) * (third + np.float32(0.5) * momentum)
    weights, kept = outer.stepped(one, other.copy(), third.copy())
    assert np.array_equal(weights, moved) and np.array_equal(kept, momentum)
    waves, of_both = outer.marks(one)[1:] + outer.marks(other)[1:], outer.marks(one + other)[1:]
    assert waves == pytest.approx(of_both, abs=0.01), "they are linear"
