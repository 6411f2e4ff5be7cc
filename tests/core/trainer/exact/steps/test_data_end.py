"""Which writes of a step Keras makes although there is no batch left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


def names(tf: Any, step: Any, *variables: Any) -> list[str]:
    from core.trainer.exact.steps import data_end

    traced = tf.function(step, autograph=False).get_concrete_function(tf.TensorSpec([None, 2]))
    found = data_end.writes_without_batch(traced, variables)
    places = {inner.op.name: outer for outer, inner in traced.graph.captures}
    handles = [places[each.inputs[0].op.name] for each in found]
    return [variable.name for variable in variables if any(variable.handle is each for each in handles)]


def test_only_what_waits_for_no_batch_is_written(tf: Any) -> None:
    count, weight, mean = (tf.Variable(1.0, name=name) for name in ("count", "weight", "mean"))
    other = tf.Variable(0.0, name="other")

    def step(batch: Any) -> Any:
        count.assign_add(1.0)
        gradient = tf.reduce_sum(batch) * weight
        weight.assign_sub(gradient)
        mean.assign(0.9 * mean + 0.1 * weight)  # reads the weight after it was written
        other.assign(count)
        return gradient

    assert names(tf, step, count, weight, mean) == ["count:0"]
    assert names(tf, step, other, count) == ["other:0", "count:0"]


def test_a_write_before_the_gradients_is_made(tf: Any) -> None:
    weight = tf.Variable([2.0, 3.0], name="weight")

    def step(batch: Any) -> Any:
        gradient = tf.reduce_sum(batch, axis=0) * weight
        weight.assign_sub(0.1 * weight)
        weight.assign_sub(gradient)
        return gradient

    assert names(tf, step, weight) == ["weight:0"]


def test_the_writes_are_made_each_time(tf: Any) -> None:
    from core.trainer.exact.steps import data_end

    count, drawn = tf.Variable(5), tf.Variable([3, 7])

    def step(batch: Any) -> Any:
        drawn.assign_add([0, 1])
        count.assign_add(1)
        return tf.reduce_sum(batch) + tf.cast(count, tf.float32)

    traced = tf.function(step, autograph=False).get_concrete_function(tf.TensorSpec([None, 2]))
    write = data_end.writer(traced, [count, drawn])
    for _ in range(3):
        write()
    assert count.numpy() == 8 and np.array_equal(drawn.numpy(), [3, 10])
