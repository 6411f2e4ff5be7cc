"""In a step, ``tf.random.normal`` and the like draw TensorFlow's own numbers, by positions in variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


def test_a_step_draws_what_tensorflow_does_and_can_draw_it_again() -> None:
    import tensorflow as tf

    from core.trainer.exact.keras.local_state import StateSnapshot
    from core.trainer.exact.steps import random_positions
    from core.trainer.exact.steps.auditable import unrepeatable_op

    def step(x: Any) -> list[Any]:
        rows = tf.shape(x)[0]
        return [
            tf.random.normal([rows, 3]),
            tf.random.uniform([rows], 1.0, 3.0),
            tf.random.uniform([rows], 0, 9, tf.int32),
            tf.random.truncated_normal([2]),
            tf.random.normal([3], dtype=tf.float64),
            tf.nn.dropout(x, 0.5),
            *(tf.random.normal([2], seed=4) for _ in range(2)),
        ]

    def drawn(function: Any) -> list[np.ndarray]:
        return [each.numpy() for rows in (5, 7, 64) for each in function(tf.ones([rows]))]

    def traced(function: Any) -> Any:
        return tf.function(function, [tf.TensorSpec([None])], autograph=False)

    tf.random.set_seed(7)
    expected = drawn(traced(step))
    random_positions.replace_positions()
    positions = random_positions.Positions()
    function = traced(positions.around(step))
    graph = function.get_concrete_function().graph
    snapshot = StateSnapshot([graph])
    assert unrepeatable_op(graph) == ""
    for each in (function, traced(positions.around(step))):  # traced anew, it goes on there
        snapshot.restore()
        for one, other in zip(drawn(each), expected, strict=True):
            assert np.array_equal(one, other)
