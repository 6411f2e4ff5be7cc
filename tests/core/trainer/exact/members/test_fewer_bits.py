"""Gradients in 8 bits: near what was sent, and nothing is lost for good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def bits() -> Any:
    from core.trainer.exact.members import fewer_bits

    return fewer_bits


def sent(bits: Any, numbers: np.ndarray) -> np.ndarray:
    import tensorflow as tf

    coded = bits.encoded(tf.constant(numbers, tf.float32))
    assert coded.shape == (-(-len(numbers) // 64) * 65,) and coded.dtype == tf.uint8
    return np.asarray(bits.decoded(coded, len(numbers)))


@pytest.mark.parametrize("size", [1, 64, 1000])
@pytest.mark.parametrize("scale", [1e-38, 1e-6, 1.0, 1e30])
def test_each_number_is_within_a_127th_of_its_blocks_largest(bits: Any, size: int, scale: float) -> None:
    numbers = (scale * np.random.default_rng(size).standard_normal(size)).astype(np.float32)
    found = sent(bits, numbers)
    for begin in range(0, size, 64):
        block = numbers[begin : begin + 64]
        # Half a step of a power of two, which is less than twice the largest by 127.
        edge = max(np.abs(block).max() / 127, np.finfo(np.float32).tiny)
        assert np.abs(found[begin : begin + 64] - block).max() <= edge


def test_decoded_numbers_are_coded_again_without_loss(bits: Any) -> None:
    numbers = np.random.default_rng(0).standard_normal(640).astype(np.float32)
    once = sent(bits, numbers)
    assert (once != numbers).any() and np.array_equal(sent(bits, once), once)
    assert np.array_equal(sent(bits, np.zeros(70, np.float32)), np.zeros(70))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(bits: Any, value: float) -> None:
    numbers = np.ones(200, np.float32)
    numbers[70] = value
    found = sent(bits, numbers)
    assert np.isnan(found[64:128]).all() and np.array_equal(found[:64], numbers[:64])


def test_what_rounding_loses_is_sent_later(bits: Any) -> None:
    import tensorflow as tf

    residuals, random = bits.Residuals(), np.random.default_rng(1)
    wanted, given = np.zeros(130), np.zeros(130)
    apart = []

    step = tf.function(lambda numbers: residuals.code(numbers, 0)[1])
    for _ in range(50):
        numbers = random.standard_normal(130).astype(np.float32)
        wanted += numbers
        given += np.asarray(step(tf.constant(numbers)))
        apart.append(np.abs(wanted - given).max())
    assert 0 < max(apart) < 0.04, "one rounding, not fifty"
