"""A call that fails is undone, whenever it fails: TensorFlow drops operations that have not run by then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster

TRIALS = 40


def test_a_step_that_fails_at_once_has_stored_its_batch_and_the_values_before_it() -> None:
    import tensorflow as tf

    from core.trainer.exact.steps.undo import Undo

    weight = tf.Variable(tf.zeros([1000, 1000]))
    spec = tf.TensorSpec([None, 1000], tf.float32)
    undo = Undo([weight.handle], spec, "")

    def fail(*_: Any) -> None:
        raise ValueError("a member left")

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(data: Any) -> Any:
        tf.numpy_function(fail, [], [])
        return weight.assign_add(tf.ones_like(weight) * tf.reduce_sum(data))

    def kept_step(batch: Any) -> Any:
        with tf.control_dependencies([undo.stage(batch)]):
            return step(batch)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def call(iterator: Any) -> Any:
        with tf.control_dependencies(undo.begin()):
            return tf.while_loop(
                lambda done, _: done < 1, lambda done, _: (done + 1, kept_step(next(iterator))), [0, weight]
            )

    batches = iter(tf.data.Dataset.from_tensors(tf.ones([4000, 1000])).repeat())
    for _ in range(TRIALS):
        with pytest.raises(tf.errors.OpError, match="a member left"):
            call(batches)
        with tf.device("CPU:0"):
            kept = tf.raw_ops.StageSize(dtypes=[tf.float32], shared_name=undo._values)
        assert kept == 1  # otherwise the next line would wait forever
        [batch] = undo.take_back()
        np.testing.assert_array_equal(batch[0, :2], [1, 1])
        np.testing.assert_array_equal(weight[0, :2], [0, 0])


def test_undoing_a_step_that_runs_eagerly_restores_what_a_layer_holds_outside_keras() -> None:
    import keras
    import tensorflow as tf

    from core.trainer.exact.steps.undo import EagerUndo, handles_of

    class Counting(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.counted = tf.Variable(3.0)

    model = keras.Sequential([keras.Input((2,)), Counting()])
    undo = EagerUndo(handles_of(model), iter(["batch"]))
    next(iter(undo))
    model.layers[0].counted.assign(4.0)
    assert undo.take_back() == ["batch"]
    assert float(model.layers[0].counted) == 3.0
