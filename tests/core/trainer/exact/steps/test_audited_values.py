"""Which gradients add up so many numbers that rounding has a direction, and which states are apart."""

from __future__ import annotations

import numpy as np
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


@pytest.mark.parametrize(("other", "apart"), [(8.0, False), (8.0 + 8e-5, False), (3.0, True)])
def test_members_are_apart_if_one_counted_otherwise_but_not_if_it_rounded(other: float, apart: bool) -> None:
    from core.trainer.exact.steps.audited_values import are_apart

    assert are_apart(np.array([[8.0, 8e-5], [other, 8e-5]])) is apart


def test_a_ten_thousandth_of_a_small_gradient_is_suspect_beside_large_ones_that_cancel_out() -> None:
    from core.trainer.exact.steps.audited_values import AuditedValue

    # The norm of all gradients is 1, this one's 1e-4: a ten thousandth of it is 1e-8.
    small = AuditedValue("gradients", np.array([1e-4]), rounding=1e-9 + 3e-7, least=1e-9)
    assert small.is_suspect(1e-8, None, is_new=True, finely=True)
    assert not small.is_suspect(1e-8, None, is_new=True, finely=False), "slow steps"
    assert small.is_fault(1e-8, spread=1e-10)
    assert not small.is_fault(1e-8, spread=2e-9), "its own rounding"
    assert not small.is_fault(1e-8, spread=0.0), "nothing shows its rounding"
    assert small.is_fault(1e-6, spread=0.0)
    assert not small.is_suspect(1e-8, 2e-5, is_new=False, finely=True), (
        "an earlier audit has shown its rounding"
    )
    assert small.is_suspect(1e-6, 2e-3, is_new=False, finely=False)
