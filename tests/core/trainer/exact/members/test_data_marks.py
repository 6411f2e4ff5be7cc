"""Batch marks: which differences they show, and which they don't."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster

RANDOM = np.random.RandomState(3)
X = RANDOM.normal(size=(64, 10)).astype("float32")
Y = RANDOM.randint(0, 5, 64)
WORDS = np.array([f"word {number}" for number in range(64)])


def marks(*batches: tuple[Any, Any]) -> np.ndarray:
    """Marks of some steps of one member."""
    import tensorflow as tf

    from core.trainer.exact.members.data_marks import DataMarks

    kept = DataMarks()

    step = tf.function(lambda x, y: kept.take([(True, x), (False, y)]))
    kept.begin()
    for x, y in batches:
        step(tf.constant(x), tf.constant(y))
    return np.asarray(kept.so_far())


def found(one: np.ndarray, other: np.ndarray, *, drawn: bool = False) -> dict[int, list[int]]:
    """By member, which of ``GROUPS`` differ."""
    from core.trainer.exact.members.data_marks import GROUPS, unlike

    differ = unlike(np.stack([one, other, one], 1), drawn=drawn)
    return {rank: [GROUPS.index(group) for group in groups] for rank, groups in differ.items()}


def test_the_same_batches_have_the_same_marks() -> None:
    assert found(marks((X, Y), (X + 1, Y)), marks((X, Y), (X + 1, Y))) == {}


@pytest.mark.parametrize(
    ("other", "groups"),
    [
        ((X[::-1].copy(), Y[::-1].copy()), [0, 3]),
        ((X, np.where(np.arange(64) == 40, (Y + 1) % 5, Y)), [3]),
        ((X * np.where(np.arange(64) == 5, 1.1, 1.0)[:, None].astype("float32"), Y), [0]),
        ((X + np.float32(0.1), Y), [0]),
    ],
    ids=["order", "one label", "one row", "a shift"],
)
def test_different_batches_have_different_marks(other: tuple[Any, Any], groups: list[int]) -> None:
    assert found(marks((X, Y)), marks(other)) == {1: groups}


def test_texts_and_targets_with_a_fraction_are_compared_as_well() -> None:
    target = X[:, 0]
    assert found(marks((WORDS, target)), marks((WORDS[::-1].copy(), target))) == {1: [2]}
    assert found(marks((WORDS, target)), marks((WORDS, target[::-1].copy()))) == {1: [1]}


def test_rounding_is_no_difference_and_neither_is_what_is_known_to_be_drawn() -> None:
    assert found(marks((X, Y)), marks((X * np.float32(1 + 1e-6), Y))) == {}
    assert found(marks((X, Y)), marks((X + 1, Y)), drawn=True) == {}
    assert found(marks((X, Y)), marks((X, (Y + 1) % 5)), drawn=True) == {1: [3]}


def test_large_tensors_are_sampled_and_empty_ones_are_accepted() -> None:
    from core.trainer.exact.members.data_marks import SAMPLED

    large = RANDOM.normal(size=(64, 3 * SAMPLED)).astype("float32")
    assert found(marks((large, Y)), marks((large[::-1].copy(), Y))) == {1: [0]}
    assert found(marks((X[:0], Y[:0])), marks((X[:0], Y[:0]))) == {}


def test_a_nan_on_one_member_alone_is_a_difference() -> None:
    broken = X.copy()
    broken[0, 0] = np.nan
    assert found(marks((broken, Y)), marks((broken, Y))) == {}
    assert found(marks((X, Y)), marks((broken, Y))) == {1: [0]}


def test_one_wrong_label_shows_beside_many_words_and_in_many_steps() -> None:
    tokens = RANDOM.randint(0, 20_000, (64, 200))
    other = np.where(np.arange(64) == 9, (Y + 1) % 5, Y)
    same = [(tokens, Y)] * 99
    assert found(marks(*same, (tokens, Y)), marks(*same, (tokens, other))) == {1: [3]}


def test_a_pixel_that_was_rounded_the_other_way_is_no_difference() -> None:
    pixels = RANDOM.randint(0, 256, (64, 28, 28)).astype("uint8")
    other = pixels.copy()
    other[0, 0, 0] ^= 1
    assert found(marks((pixels, Y)), marks((other, Y))) == {}
