"""Every way to weight rows in a loss: sample and class weights, masks, sums, regularisers, added losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers, ops

from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import (
    BATCH,
    CLASSES,
    FEATURES,
    ROWS,
    Outcome,
    classes,
    scenario,
    table,
)


def weights(rows: int = ROWS) -> np.ndarray:
    return np.random.RandomState(8).uniform(0, 2, rows).astype("float32")


def sequences(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Words 1..19 padded with 0 to 6, very different in length in the first and last rows of a batch."""
    random = np.random.RandomState(9)
    lengths = 1 + (np.arange(rows) % BATCH) * 5 // BATCH
    words = random.randint(1, 20, (rows, 6)) * (np.arange(6) < lengths[:, None])
    return words.astype("int32"), (words % 3).astype("int32")


def tagger(loss: Any, **options: Any) -> Any:
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(20, 5, mask_zero=True),
            layers.Dense(6, activation="tanh"),
            layers.Dense(3),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=loss, **options)
    return model


def crossentropy(**options: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, **options)


@scenario(core=True)
def sample_weights(folder: Path) -> Outcome:
    x, y = table()
    model = dense()
    model.compile(keras.optimizers.SGD(0.05), loss="mse", weighted_metrics=["mae"], metrics=["mse"])
    history = model.fit(x, y, sample_weight=weights(), batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def class_weights(folder: Path) -> Outcome:
    x, y = classes()
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(CLASSES)])
    model.compile(keras.optimizers.SGD(0.1), loss=crossentropy(), metrics=["accuracy"])
    history = model.fit(x, y, class_weight={0: 1.0, 1: 3.0, 2: 0.5}, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(core=True)
def mean_with_sample_weight(folder: Path) -> Outcome:
    x, y = table()
    model = dense()
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    model.compile(keras.optimizers.SGD(0.05), loss=loss)
    history = model.fit(x, y, sample_weight=weights(), batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(core=True)
def sum_reduction(folder: Path) -> Outcome:
    x, y = table()
    model = dense()
    model.compile(keras.optimizers.SGD(0.001), loss=keras.losses.MeanSquaredError(reduction="sum"))
    history = model.fit(x, y, batch_size=BATCH, validation_data=(x[:100], y[:100]), verbose=0)
    return Outcome([model], {name: np.divide(value, 64) for name, value in history.history.items()})


@scenario(core=True)
def masks(folder: Path) -> Outcome:
    x, y = sequences()
    model = tagger(crossentropy(), metrics=["accuracy"], weighted_metrics=["accuracy"])
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def masks_with_sample_weights(folder: Path) -> Outcome:
    x, y = sequences()
    model = tagger(crossentropy(reduction="mean_with_sample_weight"))
    history = model.fit(x, y, sample_weight=weights(6 * ROWS).reshape(ROWS, 6), batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def masks_summed(folder: Path) -> Outcome:
    x, y = sequences()
    model = tagger(crossentropy(reduction="sum"))
    model.optimizer.learning_rate = 0.0005
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {"loss": np.divide(history.history["loss"], 64)})


@scenario()
def masked_recurrent(folder: Path) -> Outcome:
    x, y = sequences()
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(20, 4, mask_zero=True),
            layers.LSTM(5),
            layers.Dense(3),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), loss=crossentropy())
    model.fit(x, y[:, 0], batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario(core=True)
def regularisers(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(8, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.02)),
            layers.Dense(1, kernel_regularizer=keras.regularizers.L1(0.01), bias_regularizer="l2"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def activity_regulariser(folder: Path) -> Outcome:
    x, y = table()
    penalty = keras.regularizers.L2(0.05)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(8, activation="tanh", activity_regularizer=penalty),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class Spread(layers.Layer):
    """Adds the mean square of its input as a scalar, and a tenth of it row by row."""

    def call(self, x: Any) -> Any:
        self.add_loss(0.05 * ops.mean(ops.square(x)))
        self.add_loss(0.0005 * ops.mean(ops.square(x), axis=-1))
        return x


@scenario(core=True)
def add_loss(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8, activation="tanh"), Spread(), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def own_loss_function(folder: Path) -> Outcome:
    """One value per row, and one value per batch."""
    x, y = table()
    outcome = []
    for axis in (-1, None):
        model = dense()
        model.compile(
            keras.optimizers.SGD(0.05),
            loss=lambda true, seen, axis=axis: ops.mean(ops.log(ops.cosh(true - seen)), axis=axis),
        )
        model.fit(x, y, batch_size=BATCH, verbose=0)
        outcome.append(model)
    return Outcome(outcome)


class SmoothMean(keras.metrics.Metric):
    """A custom metric: sums of rows."""

    def __init__(self, name: str = "smooth") -> None:
        super().__init__(name=name)
        self.total = self.add_variable((), "zeros", name="total")
        self.rows = self.add_variable((), "zeros", dtype="int32", name="rows")

    def update_state(self, true: Any, seen: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(ops.sum(ops.tanh(seen)))
        self.rows.assign_add(ops.shape(seen)[0])

    def result(self) -> Any:
        return self.total / ops.cast(self.rows, "float32")


@scenario(core=True)
def metrics(folder: Path) -> Outcome:
    x, y = table()
    y = (y > 0).astype("float32")
    model = dense()
    model.compile(
        keras.optimizers.SGD(0.1),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[
            SmoothMean(),
            keras.metrics.AUC(from_logits=True, num_thresholds=50),
            keras.metrics.Precision(0.0),
            keras.metrics.RootMeanSquaredError(),
            keras.metrics.F1Score(threshold=0.4),
            lambda true, seen: ops.mean(ops.abs(true - seen)),
        ],
        weighted_metrics=[keras.metrics.MeanAbsoluteError()],
    )
    history = model.fit(
        x, y, sample_weight=weights(), batch_size=BATCH, epochs=2, validation_split=0.2, verbose=0
    )
    return Outcome([model], {name: np.ravel(value) for name, value in history.history.items()})
