"""Sources of batches, and how their last batch ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tests.exactness.scenarios.losses import weights
from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, Outcome, scenario, table


def fitted(*args: Any, **options: Any) -> Outcome:
    model = dense()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss="mse", metrics=["mae"])
    history = model.fit(*args, verbose=0, **options)
    return Outcome([model], history.history)


@scenario(core=True)
def last_batch_of_one_row(folder: Path) -> Outcome:
    x, y = table(BATCH * 6 + 1)
    return fitted(x, y, batch_size=BATCH, epochs=3)


@scenario()
def last_batch_of_two_rows(folder: Path) -> Outcome:
    x, y = table(BATCH * 6 + 2)
    return fitted(x, y, batch_size=BATCH, epochs=3, sample_weight=weights(len(x)))


@scenario()
def last_batch_of_37_rows(folder: Path) -> Outcome:
    x, y = table(BATCH * 6 + 37)
    return fitted(x, y, batch_size=BATCH, epochs=3)


@scenario()
def batches_of_one_row(folder: Path) -> Outcome:
    x, y = table(20)
    return fitted(x, y, batch_size=1)


@scenario()
def arrays_unshuffled(folder: Path) -> Outcome:
    x, y = table()
    return fitted(x, y, batch_size=BATCH, shuffle=False)


@scenario(core=True)
def dataset(folder: Path) -> Outcome:
    x, y = table(BATCH * 6 + 5)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(400, seed=4).batch(BATCH).prefetch(2)
    return fitted(data, epochs=3)


@scenario()
def dataset_with_weights(folder: Path) -> Outcome:
    x, y = table()
    data = tf.data.Dataset.from_tensor_slices((x, y, weights())).batch(BATCH, drop_remainder=True)
    return fitted(data)


@scenario(core=True)
def dataset_infinite(folder: Path) -> Outcome:
    x, y = table(500)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH)
    return fitted(data, epochs=4, steps_per_epoch=5)


@scenario()
def dataset_of_unknown_length(folder: Path) -> Outcome:
    x, y = table(600)
    data = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda a, _: a[0] > -0.5).batch(BATCH)
    return fitted(data, epochs=2)


@scenario()
def data_of_unknown_length_in_three_epochs(folder: Path) -> Outcome:
    """Plain Keras begins one step more in each, which counts, draws a seed and lets weights decay."""
    x, y = table(600)
    rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100)
    data = rows.filter(lambda a, _: a[0] > -0.5).batch(BATCH)
    model = keras.Sequential([layers.Dense(8, "tanh"), layers.Dropout(0.2, seed=3), layers.Dense(1)])
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1), "mse")
    model.fit(data, epochs=3, verbose=0)
    return Outcome([model])


@scenario()
def dataset_across_epochs(folder: Path) -> Outcome:
    """steps_per_epoch does not divide the data: the iterator continues in the next epoch."""
    x, y = table(BATCH * 9)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    return fitted(data, epochs=3, steps_per_epoch=3)


class Batches(keras.utils.PyDataset):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.x, self.y = table(rows)

    def __len__(self) -> int:
        return -(-len(self.x) // BATCH)

    def __getitem__(self, index: int) -> Any:
        rows = slice(index * BATCH, (index + 1) * BATCH)
        return self.x[rows], self.y[rows]


@scenario()
def py_dataset(folder: Path) -> Outcome:
    return fitted(Batches(BATCH * 6 + 3), epochs=3)


@scenario(core=True)
def generator(folder: Path) -> Outcome:
    def batches() -> Iterator[Any]:
        x, y = table(BATCH * 20)
        for begin in range(0, len(x), BATCH):
            yield x[begin : begin + BATCH], y[begin : begin + BATCH]

    return fitted(batches(), epochs=4, steps_per_epoch=5)


@scenario()
def generator_until_it_ends(folder: Path) -> Outcome:
    def batches() -> Iterator[Any]:
        x, y = table(BATCH * 9 + 7)
        for begin in range(0, len(x), BATCH):
            yield x[begin : begin + BATCH], y[begin : begin + BATCH]

    return fitted(batches(), epochs=1)


@scenario()
def validation_data(folder: Path) -> Outcome:
    x, y = table(500)
    held_x, held_y = table(71, seed=12)
    return fitted(x, y, batch_size=BATCH, epochs=4, validation_data=(held_x, held_y), validation_freq=2)


@scenario()
def validation_split(folder: Path) -> Outcome:
    x, y = table(500)
    return fitted(x, y, batch_size=BATCH, epochs=3, validation_split=0.3, validation_batch_size=33)


@scenario()
def validation_dataset(folder: Path) -> Outcome:
    x, y = table(500)
    held = tf.data.Dataset.from_tensor_slices(table(80, seed=12)).repeat().batch(30)
    return fitted(x, y, batch_size=BATCH, epochs=3, validation_data=held, validation_steps=4)


@scenario()
def initial_epoch(folder: Path) -> Outcome:
    x, y = table(400)
    return fitted(x, y, batch_size=BATCH, epochs=5, initial_epoch=2)


@scenario()
def seeded_augmentation(folder: Path) -> Outcome:
    """Randomness in the pipeline is the same on all members."""
    x, y = table(500)
    noisy = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).batch(BATCH)
    noisy = noisy.map(lambda a, b: (a + tf.random.normal(tf.shape(a), stddev=0.01, seed=2), b))
    return fitted(noisy, epochs=2)


@scenario()
def numpy_randomness(folder: Path) -> Outcome:
    x, y = table(500)
    order = np.random.permutation(len(x))
    return fitted(x[order], y[order], batch_size=BATCH, epochs=2)
