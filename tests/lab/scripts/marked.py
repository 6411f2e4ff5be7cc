"""Trains a weight whose gradient everybody knows who reads this: on an open wire it is plain to see."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

BATCH = 64
marker = np.random.default_rng(20261122).standard_normal(4096).astype("float32")


class Marked(keras.layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.weight = self.add_weight(shape=marker.shape, initializer="zeros")

    def call(self, rows: Any) -> Any:
        return rows * tf.reduce_sum(self.weight * marker)


keras.utils.set_random_seed(7)
model = keras.Sequential([keras.Input((1,)), Marked()])
# The weight stays zero and each row's error one, so that the gradient of the whole batch is the marker.
model.compile(keras.optimizers.SGD(0.0), "mae")
rows = np.ones((BATCH * 1000, 1), "float32")
model.fit(rows, -rows, batch_size=BATCH, epochs=100_000, verbose=0)
