"""Steps that cannot be computed twice: what would be left to audits is checked before the first of them, and
later in the gradients alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.audited import ClippedBack
from tests.exactness.scenarios.hidden import eagerly
from tests.exactness.scenarios.patterns import Worked, applied
from tests.exactness.scenarios.rarely import as_quick_steps
from tests.exactness.scenarios.registry import BATCH, FEATURES, ROWS, Outcome, scenario, table


def off_by(true: Any, seen: Any) -> Any:
    """A metric computed in NumPy, a number per row."""

    def off(true: Any, seen: Any) -> Any:
        return np.abs(true - seen).astype("float32")[:, 0]

    return tf.ensure_shape(tf.numpy_function(off, [true, seen], tf.float32), [None])


def _fitted(model: Any, loss: Any = "mse", rows: int = ROWS, y: Any = None, **given: Any) -> Outcome:
    x, smooth = table(rows)
    model.compile(keras.optimizers.SGD(0.05), loss=loss, metrics=[off_by])
    history = model.fit(x, smooth if y is None else y, batch_size=BATCH, verbose=0, **given)
    return Outcome([model], {} if given else history.history)


def _dense(*between: Any) -> Any:
    return keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, "tanh"), *between, layers.Dense(1)])


class Counted(Worked):
    """A step that calls Python, with a gradient that is clipped on its way back."""

    def __init__(self) -> None:
        super().__init__(applied)
        self.clipped = ClippedBack()
        self.counted = 0

    def call(self, x: Any, training: bool = False) -> Any:
        return self.outer(self.clipped(self.inner(x)))

    def train_step(self, data: Any) -> Any:
        logs = super().train_step(data)
        tf.py_function(self.count, [logs["loss"]], [])
        return logs

    def count(self, loss: Any) -> None:
        self.counted += 1


@scenario(once=True, core=True, told="computes each batch whole")
def gradient_clipped_beside_python(folder: Path) -> Outcome:
    x, y = table()
    model = Counted()
    model.compile(keras.optimizers.SGD(0.05))
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {"counted": model.counted})


@scenario(once=True, told="computes each batch whole")
def loss_divided_by_itself_beside_python(folder: Path) -> Outcome:
    def loss(true: Any, seen: Any) -> Any:
        far = ops.mean(ops.square(true - seen))
        return far / ops.stop_gradient(far)

    return _fitted(_dense(), loss)


@scenario(once=True, told="computes each batch whole")
def loss_divided_by_itself_eagerly(folder: Path) -> Outcome:
    def loss(true: Any, seen: Any) -> Any:
        far = ops.mean(ops.square(true - seen))
        return far / ops.stop_gradient(far)

    return eagerly(loss)


@scenario(once=True, told="computes each batch whole")
def term_that_begins_later_eagerly(folder: Path) -> Outcome:
    calls: list[int] = []

    def loss(true: Any, seen: Any) -> Any:
        calls.append(1)
        far = ops.mean(ops.square(true - seen))
        return far + ops.std(seen) if len(calls) > 3 else far

    return eagerly(loss)


@scenario(once=True, told="computes each batch whole")
def gradient_clipped_behind_a_closed_gate(folder: Path) -> Outcome:
    """No gradient flows there before the first step."""
    inputs = keras.Input((FEATURES,))
    gated = layers.Dense(8, use_bias=False, kernel_initializer="zeros")(
        ClippedBack()(layers.Dense(8, "tanh")(inputs))
    )
    model = keras.Model(inputs, layers.Dense(1)(layers.Concatenate()([inputs, gated])))
    return _fitted(model)


@scenario(once=True, told="computes each batch whole")
def missing_from_the_middle_beside_python(folder: Path) -> Outcome:
    """The first batch has every target."""
    _, y = table()
    y[ROWS // 2 :: 3] = np.nan

    def loss(true: Any, seen: Any) -> Any:
        there = ops.isfinite(true)
        far = ops.where(there, ops.square(ops.where(there, true, 0.0) - seen), 0.0)
        return ops.sum(far) / ops.sum(ops.cast(there, "float32"))

    return _fitted(_dense(), loss, y=y, shuffle=False)


@scenario(once=True, core=True, exact=False, told="audit", differs=True)
def term_that_begins_later_beside_python(folder: Path) -> Outcome:
    """Found once it is large enough, in the gradients alone; nothing else of the steps before was audited."""
    model = _dense()

    def loss(true: Any, seen: Any) -> Any:
        begun = model.optimizer.iterations >= 12
        far = ops.mean(ops.square(true - seen))
        return far + tf.cond(begun, lambda: tf.math.reduce_std(seen), lambda: tf.constant(0.0))

    with as_quick_steps():
        return _fitted(model, loss)


class Noisy(layers.Layer):
    """Adds what NumPy draws: as many numbers as there are rows."""

    def call(self, x: Any, training: bool = False) -> Any:
        def noise(x: Any) -> Any:
            return (x + 0.1 * np.random.normal(size=x.shape)).astype("float32")

        return tf.ensure_shape(tf.numpy_function(noise, [x], tf.float32), x.shape) if training else x


@scenario(once=True, told="computes each batch whole")
def noise_drawn_by_numpy(folder: Path) -> Outcome:
    """The checks before the first step must not use up any of its random numbers."""
    return _fitted(keras.Sequential([keras.Input((FEATURES,)), Noisy(), layers.Dense(1)]))


@scenario(once=True, core=True)
def python_beside_what_is_shared(folder: Path) -> Outcome:
    return _fitted(_dense(layers.BatchNormalization(), layers.Dropout(0.3, seed=4)))


@scenario(once=True)
def python_beside_words_in_order(folder: Path) -> Outcome:
    """Sparse gradients, and a loop with its own."""
    words = np.random.RandomState(2).randint(0, 30, (ROWS, 6)).astype("int32")
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(30, 4, mask_zero=True),
            layers.LSTM(5),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse", metrics=[off_by])
    history = model.fit(words, table()[1], batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(once=True)
def python_beside_images(folder: Path) -> Outcome:
    random = np.random.RandomState(2)
    x, y = random.uniform(-1, 1, (320, 16, 16, 3)).astype("float32"), random.randint(0, 5, 320)

    def right(true: Any, seen: Any) -> Any:
        def counted(true: Any, seen: Any) -> Any:
            return (true.reshape(-1) == seen.argmax(-1)).astype("float32")

        return tf.ensure_shape(tf.numpy_function(counted, [true, seen], tf.float32), [None])

    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(5),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.05), loss, metrics=[right])
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})


@scenario(once=True)
def attention_eagerly(folder: Path) -> Outcome:
    x, y = table(BATCH * 4)
    inputs = keras.Input((FEATURES,))
    words = layers.Reshape((4, 2))(inputs)
    seen = layers.LayerNormalization()(words + layers.MultiHeadAttention(2, 2)(words, words))
    model = keras.Model(inputs, layers.Dense(1)(layers.Flatten()(seen)))
    model.compile(keras.optimizers.SGD(0.05), loss="mse", run_eagerly=True)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})
