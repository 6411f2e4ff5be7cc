"""Changes after the first batch: other lengths, many rows after one; code that must run only once; and what
looks like a mean over rows, but for how it is drawn, looped over or looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.hidden import Blurred
from tests.exactness.scenarios.patterns import Centred
from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table


@scenario(once=True, gathers=True)
def lengths_by_batch(folder: Path) -> Outcome:
    """Each batch is as long as its longest row, and the loss is a mean over the unmasked entries."""

    def masked(true: Any, seen: Any) -> Any:
        mask = ops.cast(true != 0, "float32")
        return ops.sum(mask * ops.square(true - seen)) / ops.sum(mask)

    model = keras.Sequential([keras.Input((None, 4)), layers.Dense(6, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), loss=masked)
    random = np.random.RandomState(1)
    for length in (5, 7, 6, 9, 8, 7):
        x = random.normal(size=(BATCH, length, 4)).astype("float32")
        there = np.arange(length)[None, :, None] < random.randint(1, length + 1, (BATCH, 1, 1))
        model.train_on_batch(x, (x.sum(-1, keepdims=True) * there).astype("float32"))
    return Outcome([model], {})


@scenario(once=True, gathers=True)
def one_row_and_then_many(folder: Path) -> Outcome:
    x, y = table(200)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss=lambda true, seen: ops.sqrt(ops.mean((true - seen) ** 2)))
    model.train_on_batch(x[:1], y[:1])
    for begin in range(1, 180, 30):
        model.train_on_batch(x[begin : begin + 30], y[begin : begin + 30])
    return Outcome([model], {})


@scenario(once=True, told="computes each batch whole")
def layer_that_counts_eagerly(folder: Path) -> Outcome:
    counted: list[int] = []

    class Warming(layers.Layer):
        def call(self, x: Any) -> Any:
            counted.append(1)
            return x * (0.0 if len(counted) <= 3 else 1.0)

    x, y = table(5 * BATCH)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(4, "tanh"), Warming(), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse", run_eagerly=True)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {"counted": [len(counted)]})


@scenario(once=True, told="computes each batch whole")
def generator_eagerly(folder: Path) -> Outcome:
    x, y = table(5 * BATCH)
    model = keras.Sequential([keras.Input((FEATURES,)), Blurred(), layers.Dense(6, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse", run_eagerly=True)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})


@scenario(once=True, told="computes each batch whole")
def predicted_one_row_and_then_many(folder: Path) -> Outcome:
    x, _ = table(200)
    model = keras.Sequential([keras.Input((FEATURES,)), Centred(), layers.Dense(2)])
    first = model.predict(x[:1], verbose=0)
    return Outcome([model], {"first": first, "many": model.predict(x, batch_size=50, verbose=0)})


class Noisy(layers.Layer):
    """Adds noise from its own generator, also to predictions."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = tf.random.Generator.from_seed(6)

    def call(self, x: Any) -> Any:
        return x + self.generator.normal(tf.shape(x))


@scenario(once=True, told="computes each batch whole")
def noise_in_predictions(folder: Path) -> Outcome:
    x, _ = table(200)
    model = keras.Sequential([keras.Input((FEATURES,)), Noisy(), layers.Dense(2)])
    return Outcome([model], {"predicted": model.predict(x, batch_size=50, verbose=0)})


@scenario(once=True, told="computes each batch whole")
def predictions_in_tens(folder: Path) -> Outcome:
    """A part of the batch breaks the model."""

    def turned(seen: Any) -> Any:
        return ops.reshape(ops.flip(ops.reshape(seen, (-1, 10, 2)), axis=1), (-1, 2))

    x, _ = table(50)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(2), layers.Lambda(turned)])
    return Outcome([model], {"predicted": model.predict(x, batch_size=50, verbose=0)})


@scenario(once=True)
def variable_of_any_shape(folder: Path) -> Outcome:
    class Keeping(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            zeros = np.zeros((3, 2), "float32")
            self.kept = tf.Variable(zeros, shape=tf.TensorShape(None), trainable=False)

        def call(self, x: Any) -> Any:
            return x

    x, y = table(5 * BATCH)
    model = keras.Sequential([keras.Input((FEATURES,)), Keeping(), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})


@scenario(once=True, told="is of the batch as a whole, not a mean over its rows")
def classes_sampled_for_a_softmax(folder: Path) -> Outcome:
    """word2vec's loss: TensorFlow's samplers keep their position in the runtime."""

    class Sampled(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.words = layers.Embedding(50, 8)
            self.kernel = self.add_weight(shape=(50, 8), name="kernel")
            self.bias = self.add_weight(shape=(50,), initializer="zeros", name="bias")

        def call(self, x: Any) -> Any:
            return self.words(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                true = tf.cast(y[:, tf.newaxis], tf.int64)
                each = tf.nn.sampled_softmax_loss(self.kernel, self.bias, true, self(x), 16, 50)
                loss = tf.reduce_mean(each)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss}

    random = np.random.RandomState(1)
    x, y = random.randint(0, 50, 1280), random.randint(0, 50, 1280)
    model = Sampled()
    model.compile(keras.optimizers.SGD(0.5))
    history = model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    return Outcome([model], history.history)


@scenario(once=True, told="is written from the rows of a batch by the script")
def gradients_clipped_row_by_row(folder: Path) -> Outcome:
    """Differential privacy: a tape for each row, in a loop over the rows."""

    class Private(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = keras.Sequential(
                [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(1)]
            )

        def call(self, x: Any) -> Any:
            return self.inner(x)

        def train_step(self, data: Any) -> Any:
            weights = self.trainable_variables

            def of_row(row: Any) -> Any:
                x, y = row
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self(x[tf.newaxis]) - y[tf.newaxis]))
                grads = tape.gradient(loss, weights)
                return [grad * tf.minimum(1.0, 0.5 / tf.linalg.global_norm(grads)) for grad in grads]

            signature = [tf.TensorSpec(weight.shape, tf.float32) for weight in weights]
            each = tf.map_fn(of_row, data, fn_output_signature=signature)
            grads = [tf.reduce_mean(grad, 0) for grad in each]
            self.optimizer.apply_gradients(zip(grads, weights, strict=True))
            return {"size": tf.linalg.global_norm(grads)}

    model = Private()
    model.compile(keras.optimizers.SGD(0.05))
    x, y = table()
    history = model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    return Outcome([model], history.history)


@scenario(once=True, told="an audit found")
def sparse_features(folder: Path) -> Outcome:
    """Keras looks a kernel up by the features that a batch has: each of them once, whoever has it."""
    random = np.random.RandomState(4)
    dense = (random.uniform(size=(1280, 30)) < 0.1) * random.normal(size=(1280, 30))
    features = tf.sparse.from_dense(dense.astype("float32"))
    data = tf.data.Dataset.from_tensor_slices((features, table()[1])).batch(BATCH)
    given = keras.Input((30,), sparse=True)
    model = keras.Model(given, layers.Dense(1)(layers.Dense(8, "tanh")(given)))
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(data, epochs=2, verbose=0)
    return Outcome([model], history.history)
