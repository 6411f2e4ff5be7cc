"""A batch's mean and variance over two members, one of which is simulated by known numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster

FAR = 1e4
"""Distance of the values from zero in standard deviations; there, E[x^2] - E[x]^2 has no correct digit."""


def statistics(rows: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """What members exchange, by column: count and rounded mean of valid entries, sum and squares about it."""
    count = valid.sum(axis=0)
    mean = (np.where(valid, rows, 0.0).sum(axis=0) / count).astype(np.float32)
    away = np.where(valid, rows - mean, 0.0)
    found = np.stack([count, mean, away.sum(axis=0), np.square(away).sum(axis=0)])
    return found.astype(np.float32)[:, np.newaxis]


@pytest.mark.parametrize("is_masked", [False, True])
def test_moments_and_gradients_are_those_of_all_rows_after_one_meeting_each(tf: Any, is_masked: bool) -> None:
    from core.trainer.exact.members import step as steps
    from core.trainer.exact.members.step_meter import StepMeter
    from core.trainer.exact.patch import in_step

    random = np.random.default_rng(3)
    rows = (random.standard_normal((48, 3)) + FAR).astype(np.float32)
    mask = np.arange(48) % 3 > 0 if is_masked else np.full(48, True)
    valid = np.broadcast_to(mask[:, np.newaxis], rows.shape)
    own, others = rows[:36], statistics(rows[36:].astype(np.float64), valid[36:])
    met: list[str] = []

    class Collectives:
        meets_between_steps = False

        def gather_all(self, values: list[Any], what: str) -> list[Any]:
            met.append("gather")
            return [tf.concat([value, others[np.newaxis]], axis=0) for value in values]

        def sum(self, value: Any, what: str) -> Any:
            met.append("sum")
            return tf.identity(value)  # the other member's loss does not depend on these moments

    meter, layer = StepMeter(), SimpleNamespace(axis=-1, synchronized=False)
    factors = random.standard_normal((2, 3)).astype(np.float32)

    def moments(x: Any) -> Any:
        part, rows = tf.constant(0.75), tf.constant(48, tf.int64)
        step = steps.Step(Collectives(), part, tf.constant(True), rows, meter)  # type: ignore[arg-type]
        with steps.active(step), tf.GradientTape() as tape:
            tape.watch(x)
            found = in_step.batch_moments(_unused, layer, x, mask[:36] if is_masked else None)
            loss = tf.reduce_sum(tf.stack(found) * factors)
        return (*found, tape.gradient(loss, x))

    traced = tf.function(moments, autograph=False)
    mean, variance, gradient = (each.numpy() for each in traced(tf.constant(own)))
    exact = rows.astype(np.float64)[mask]
    away = np.where(mask[:36, np.newaxis], own - exact.mean(axis=0), 0.0)
    expected = (np.where(valid[:36], factors[0], 0.0) + 2 * away * factors[1]) / len(exact)
    assert met == ["gather", "sum"]
    assert mean == pytest.approx(exact.mean(axis=0), rel=2e-7)
    assert variance == pytest.approx(exact.var(axis=0), rel=1e-5)
    assert gradient == pytest.approx(expected, rel=1e-2, abs=1e-4)


@pytest.mark.parametrize("is_masked", [False, True])
def test_second_gradients_are_those_of_keras(tf: Any, is_masked: bool) -> None:
    import keras

    from core.trainer.exact.members import step as steps
    from core.trainer.exact.members.step_meter import StepMeter
    from core.trainer.exact.patch import in_step

    class Collectives:
        """The other member has no row."""

        meets_between_steps = False

        def gather_all(self, values: list[Any], what: str) -> list[Any]:
            return [tf.concat([value, tf.zeros_like(value)], axis=0) for value in values]

        def sum(self, value: Any, what: str) -> Any:
            return tf.identity(value)

    random = np.random.default_rng(3)
    rows = random.standard_normal((5, 3)).astype(np.float32) + 2
    mask = np.arange(5) > 1 if is_masked else None
    layer, meter = keras.layers.BatchNormalization(), StepMeter()
    layer.build((None, 3))
    original = type(layer)._moments

    def penalty(x: Any, moments: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                mean, variance = moments(x)
                loss = tf.reduce_sum(tf.square((x - mean) / tf.sqrt(variance + 0.1)) * np.arange(3.0))
            slope = inner.gradient(loss, x)
            found = tf.reduce_sum(tf.square(slope))
        return slope, outer.gradient(found, x)

    def shared(x: Any) -> Any:
        part, rows = tf.constant(1.0), tf.constant(5, tf.int64)
        step = steps.Step(Collectives(), part, tf.constant(True), rows, meter)  # type: ignore[arg-type]
        with steps.active(step):
            return penalty(x, lambda x: in_step.batch_moments(original, layer, x, mask))

    def alone(x: Any) -> Any:
        return penalty(x, lambda x: original(layer, x, mask))

    slopes = [tf.function(each, autograph=False)(tf.constant(rows)) for each in (shared, alone)]
    for found, expected in zip(*slopes, strict=True):
        assert np.abs(expected).max() > 0.01
        assert found.numpy() == pytest.approx(expected.numpy(), rel=1e-4, abs=1e-5)


def _unused(*args: Any) -> Any:
    raise AssertionError("Keras' own moments cover the own rows only")
