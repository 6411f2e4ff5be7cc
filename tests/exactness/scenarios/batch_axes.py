"""Batches whose first axis is not the rows', or not in all leaves: exact, as every member computes them
whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table

_PAIRS = 20


class PairsOfClasses(keras.utils.PyDataset):
    """As in metric learning: an anchor and a positive of each class, x of (2, classes, features)."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        drawn = np.random.RandomState(100 + index).normal(size=(2, _PAIRS, FEATURES))
        return (drawn + np.arange(_PAIRS)[:, None] / 5).astype("float32")


class Embedding(keras.Model):
    """Pulls each anchor towards its own positive: a loss over classes, not over the first axis."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(6)])

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def train_step(self, data: Any) -> Any:
        data = data[0] if isinstance(data, tuple) else data
        anchors, positives = data[0], data[1]
        with tf.GradientTape() as tape:
            alike = ops.matmul(self.inner(anchors), ops.transpose(self.inner(positives))) / 5.0
            loss = self.compute_loss(y=ops.arange(_PAIRS), y_pred=alike)
        gradients = tape.gradient(loss, self.inner.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.inner.trainable_variables, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(ops.arange(_PAIRS), alike)
        return {metric.name: metric.result() for metric in self.metrics}


def embedded(data: Any, **compiled: Any) -> Outcome:
    model = Embedding()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.02), loss=loss, metrics=["accuracy"], **compiled)
    history = model.fit(data, epochs=1, verbose=0, shuffle=False)
    return Outcome([model.inner], history.history)


@scenario(told="computes each batch whole")
def metric_learning(folder: Path) -> Outcome:
    return embedded(PairsOfClasses())


@scenario(told="computes each batch whole")
def metric_learning_eagerly(folder: Path) -> Outcome:
    return embedded(PairsOfClasses(), run_eagerly=True)


def views(take: Callable[[Any], tuple[Any, Any]], *leaves: Any) -> Outcome:
    """Trains on batches of `leaves`, which `take` turns into (x, y) by rows inside the step."""

    class Taking(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = keras.Sequential(
                [keras.Input((FEATURES,)), layers.Dense(5, "tanh"), layers.Dense(1)]
            )

        def call(self, x: Any) -> Any:
            return self.inner(x)

        def train_step(self, data: Any) -> Any:
            return super().train_step(take(data))

        def test_step(self, data: Any) -> Any:
            return super().test_step(take(data))

    model = Taking()
    model.compile(keras.optimizers.SGD(0.05), loss="mse", metrics=["mae"])
    data = tf.data.Dataset.from_tensor_slices(leaves)
    history = model.fit(data, validation_data=data.take(5), verbose=0)
    return Outcome([model.inner], {**history.history, "evaluated": model.evaluate(data, verbose=0)})


@scenario(told="computes each batch whole")
def two_views_beside_labels(folder: Path) -> Outcome:
    """x of (2, rows, features), y of (rows, 1): the leaves' first axes differ."""
    x, y = table()
    both = np.stack([x, x[::-1]]).reshape(2, -1, BATCH, FEATURES).transpose(1, 0, 2, 3)
    return views(lambda data: (data[0][0] - data[0][1], data[1]), both, y.reshape(-1, BATCH, 1))


@scenario(told="computes each batch whole")
def a_table_given_to_predict(folder: Path) -> Outcome:
    """No fit has had this batch before."""
    x, _ = table(200)
    looked_into = np.random.RandomState(4).normal(size=(40, FEATURES)).astype("float32")
    rows, look = keras.Input((FEATURES,)), keras.Input((FEATURES,))
    seen = layers.Lambda(
        lambda both: ops.mean(ops.matmul(both[0], ops.transpose(both[1])), axis=-1, keepdims=True),
        output_shape=(1,),
    )
    model = keras.Model([rows, look], layers.Dense(1)(seen([rows, look])))
    data = tf.data.Dataset.from_tensor_slices(x).batch(BATCH).map(lambda a: ((a, looked_into),))
    return Outcome([model], {"predicted": model.predict(data, verbose=0)})


@scenario(told="computes each batch whole")
def time_first(folder: Path) -> Outcome:
    """x and y with time as their first axis: each row's last prediction has the largest weight."""
    x, y = table()
    steps = np.linspace(0.5, 1.5, 10, dtype="float32")[:, None, None]
    xs = np.stack([x.reshape(-1, BATCH, FEATURES) * step for step in steps], axis=1)
    ys = np.stack([y.reshape(-1, BATCH, 1)] * 10, axis=1)
    return views(
        lambda data: (ops.mean(data[0], axis=0) + data[0][-1], data[1][-1]), xs.astype("float32"), ys
    )


@scenario(told="computes each batch whole")
def a_table_as_long_as_the_batch(folder: Path) -> Outcome:
    """All leaves have 64 entries, but those of the table are not rows."""
    x, y = table()
    looked_into = np.random.RandomState(4).normal(size=(BATCH, FEATURES)).astype("float32")
    tables = np.broadcast_to(looked_into, (len(x) // BATCH, BATCH, FEATURES))

    def take(data: Any) -> tuple[Any, Any]:
        rows, look, target = data
        return rows + ops.mean(ops.matmul(rows, ops.transpose(look)), axis=-1, keepdims=True) / 9, target

    return views(take, x.reshape(-1, BATCH, FEATURES), tables, y.reshape(-1, BATCH, 1))
