"""Which gradients add up so many numbers that rounding has a direction."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.cluster


def test_a_convolutions_bias_and_kernel_are_sums_over_all_pixels() -> None:
    import keras
    import tensorflow as tf

    from core.trainer.exact.steps.audited_values import ONE, long_sums

    model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(16, 3, padding="same")])

    def gradients(x: object) -> object:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        return tape.gradient(loss, [each.value for each in model.trainable_variables])

    traced = tf.function(gradients, autograph=False).get_concrete_function(tf.TensorSpec((None, 32, 32, 3)))
    found = long_sums(traced.graph)
    assert found[16].longer(256) == 256 * 32 * 32 / 8192 == 32.0
    assert found[3 * 3 * 3 * 16].longer(256) == 32.0**0.5
    assert found[16].longer(1) == ONE.longer(256) == 1.0
