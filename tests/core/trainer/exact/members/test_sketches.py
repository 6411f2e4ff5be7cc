"""Gradient marks: taken on request, equal for equal gradients, and different for others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


def marks(tf: Any, *gradients: Any, wanted: bool = True) -> np.ndarray:
    """One row per gradient."""
    from core.trainer.exact.members.sketches import Sketches

    sketches = Sketches()

    def step() -> Any:
        sketches.take([None, *gradients])
        return tf.constant(0)

    traced = tf.function(step)
    traced()
    if wanted:
        sketches.begin()
    traced()
    return sketches.end()[: len(gradients)]


def test_the_first_mark_is_the_square_of_the_norm_and_the_others_are_of_its_size(tf: Any) -> None:
    gradient = np.random.RandomState(1).normal(size=(300, 20)).astype("float32")
    found = marks(tf, tf.constant(gradient), tf.ones([7]), tf.constant(3.0))
    np.testing.assert_allclose(found[:, 0], [np.sum(gradient.astype(np.float64) ** 2), 7.0, 9.0])
    norm = np.linalg.norm(gradient)
    assert (np.abs(found[0, 1:]) < 5 * norm).all() and np.abs(found[0, 1:]).max() > norm / 10


def test_a_change_of_one_number_by_a_ten_thousandth_of_the_norm_shows(tf: Any) -> None:
    gradient = np.random.RandomState(2).normal(size=(3, 3, 8, 16)).astype("float32")
    other = gradient.copy()
    other[1, 2, 3, 4] += 1e-4 * np.linalg.norm(gradient)
    one, two = marks(tf, tf.constant(gradient)), marks(tf, tf.constant(other))
    assert np.linalg.norm(one[0, 1:] - two[0, 1:]) > 1e-5 * np.linalg.norm(gradient)


def test_slices_count_by_their_index_in_whatever_order_they_come(tf: Any) -> None:
    values = np.random.RandomState(3).normal(size=(5, 4)).astype("float32")
    places = np.array([3, 0, 3, 7, 1])
    order = [4, 2, 0, 1, 3]
    one = marks(tf, tf.IndexedSlices(tf.constant(values), tf.constant(places)))
    two = marks(tf, tf.IndexedSlices(tf.constant(values[order]), tf.constant(places[order])))
    other = marks(tf, tf.IndexedSlices(tf.constant(values[order]), tf.constant(places)))
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert np.abs(one - other).max() > 0.1


def test_a_gradient_of_no_known_shape_leaves_marks_as_well(tf: Any) -> None:
    from core.trainer.exact.members.sketches import Sketches

    sketches = Sketches()

    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec([None, None])])  # type: ignore[untyped-decorator]
    def step(one: Any, other: Any) -> Any:
        sketches.take([one, tf.ones([3]), other])
        return tf.constant(0)

    sketches.begin()
    step(tf.ones([5, 2]), tf.ones([2, 2]))
    np.testing.assert_allclose(sketches.end()[:3, 0], [10.0, 3.0, 4.0])


def test_a_wrong_sum_of_numbers_in_few_bits_shows_and_its_rounding_does_not(tf: Any) -> None:
    from core.trainer.exact.members.sketches import NONE, wrong_sums

    drawn = np.random.RandomState(4)
    first, second = (
        tf.cast(drawn.normal(size=20_000) * drawn.uniform(0, 2, 20_000), tf.bfloat16) for _ in range(2)
    )
    received = first + second

    def of(*given: Any) -> np.ndarray:
        return np.stack([marks(tf, each) for each in given])

    sent = of(first, second)
    assert not wrong_sums(sent, of(received, received), 2.0**-9)
    assert wrong_sums(sent, of(received, received), 2.0**-20), "the rounding is there"
    assert wrong_sums(sent, of(received, tf.cast(0.9, tf.bfloat16) * received), 2.0**-9)
    assert wrong_sums(sent, of(first, second), 2.0**-9)
    sent[0, 0] = NONE
    assert not wrong_sums(sent, of(first, second), 2.0**-9)


def test_marks_are_taken_only_on_request(tf: Any) -> None:
    assert not marks(tf, tf.ones([3]), wanted=False).any()
