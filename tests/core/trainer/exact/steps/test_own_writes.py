"""What a step computes from values that members have not added up."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("weight", "found"),
    [
        (lambda error, seen: error.result(), ["error"]),
        (lambda error, seen: 1.0 + seen, []),
    ],
    ids=["a metric", "a variable"],
)
def test_gradients_that_follow_from_a_metric_are_found(weight: Any, found: list[str], compiled: bool) -> None:
    import keras
    import tensorflow as tf

    from core.trainer.exact.steps.own_writes import metrics_in_gradients

    error, other = keras.metrics.Mean(name="error"), keras.metrics.Mean(name="other")
    kernel, seen = tf.Variable([[1.0]]), tf.Variable(0.0)
    noted: list[Any] = []

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ kernel))
            weighted = loss * weight(error, seen)
        gradient = tape.gradient(weighted, kernel)
        noted.append(gradient)
        kernel.assign_sub(gradient)
        error.update_state(loss)
        other.update_state(loss)
        return {"error": error.result(), "other": other.result()}

    inner = tf.function(step, autograph=False) if compiled else step
    traced = tf.function(lambda x: inner(x), autograph=False).get_concrete_function(
        tf.TensorSpec((None, 1), tf.float32)
    )
    assert metrics_in_gradients(traced, noted[-1:], [error, other]) == found
