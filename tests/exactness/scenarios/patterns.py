"""What ordinary scripts do besides Keras' own losses and steps: changed gradients, losses of a batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.losses import sequences
from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, CLASSES, FEATURES, Outcome, classes, scenario, table


class Worked(keras.Model):
    """A train_step that changes the gradients before they are applied, or applies them itself."""

    def __init__(self, work: Callable[[Any, list[Any]], Any], loss: Any = None) -> None:
        super().__init__()
        self.inner = layers.Dense(6, activation="tanh")
        self.outer = layers.Dense(1)
        self.work = work
        self.loss_of = loss or (lambda true, seen: tf.reduce_mean(tf.square(true - seen)))

    def call(self, x: Any, training: bool = False) -> Any:
        return self.outer(self.inner(x))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(y, self(x, training=True))
        self.work(self, tape.gradient(loss, self.trainable_variables))
        return {"loss": loss}


def worked(work: Callable[[Any, list[Any]], Any], loss: Any = None, rate: float = 0.05) -> Outcome:
    x, y = table(1200)  # the last batch has 48 rows
    model = Worked(work, loss)
    model.compile(keras.optimizers.SGD(rate))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


def applied(model: Any, grads: Any) -> None:
    model.optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))


@scenario(core=True)
def clipped_by_hand(folder: Path) -> Outcome:
    return worked(lambda model, grads: applied(model, tf.clip_by_global_norm(grads, 0.1)[0]))


@scenario()
def signs_of_gradients(folder: Path) -> Outcome:
    return worked(lambda model, grads: applied(model, [tf.sign(grad) for grad in grads]), rate=0.01)


@scenario(core=True)
def weights_assigned_by_hand(folder: Path) -> Outcome:
    """Without an optimizer."""

    def step(model: Any, grads: Any) -> None:
        for variable, grad in zip(model.trainable_variables, grads, strict=True):
            variable.assign_sub(0.1 * grad)

    return worked(step)


class Sharpness(Worked):
    """SAM: the gradient where the loss is worst nearby."""

    def __init__(self) -> None:
        super().__init__(applied)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(y, self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        norm = tf.linalg.global_norm(grads)
        moves = [0.3 * grad / (norm + 1e-12) for grad in grads]
        for variable, move in zip(self.trainable_variables, moves, strict=True):
            variable.assign_add(move)
        with tf.GradientTape() as tape:
            worst = self.loss_of(y, self(x, training=True))
        grads = tape.gradient(worst, self.trainable_variables)
        for variable, move in zip(self.trainable_variables, moves, strict=True):
            variable.assign_sub(move)
        applied(self, grads)
        return {"loss": loss, "worst": worst}


@scenario()
def sharpness_aware(folder: Path) -> Outcome:
    x, y = table()
    model = Sharpness()
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class Smoothed(Worked):
    """Penalises the norm of its own gradient: a gradient of a gradient."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = self.loss_of(y, self(x, training=True))
            steep = inner.gradient(loss, self.trainable_variables)
            whole = loss + 0.1 * tf.add_n([tf.reduce_sum(tf.square(grad)) for grad in steep])
        applied(self, outer.gradient(whole, self.trainable_variables))
        return {"loss": loss}


@scenario()
def gradient_of_a_gradient(folder: Path) -> Outcome:
    x, y = table()
    model = Smoothed(applied)
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def accumulated_by_hand(folder: Path) -> Outcome:
    """Gradients of two batches in the script's own variables."""
    kept: list[Any] = []

    def step(model: Any, grads: Any) -> None:
        for total, grad in zip(kept, grads, strict=True):
            total.assign_add(grad)

        def now() -> int:
            applied(model, [total / 2.0 for total in kept])
            for total in kept:
                total.assign(tf.zeros_like(total))
            return 0

        due = tf.equal(count.assign_add(1) % 2, 0)
        tf.cond(due, now, lambda: 0)

    count = tf.Variable(0, trainable=False)
    x, y = table()
    model = Worked(step)
    model(x[:1])
    kept += [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in model.trainable_variables]
    model.compile(keras.optimizers.SGD(0.05))
    model.optimizer.build(model.trainable_variables)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {"total": kept[0].numpy()})


@scenario(core=True, told="metric 'loss'", differs=True)
def train_step_that_sums(folder: Path) -> Outcome:
    """Over rows, by reduce_sum, and by giving the tape one value per row."""
    summed = worked(applied, lambda true, seen: tf.reduce_sum(tf.square(true - seen)), 0.001)
    by_row = worked(applied, lambda true, seen: tf.reduce_sum(tf.square(true - seen), axis=-1), 0.001)
    return Outcome(summed.models + by_row.models)


@scenario(told="metric 'loss'", differs=True)
def divided_by_a_number(folder: Path) -> Outcome:
    return worked(applied, lambda true, seen: tf.reduce_sum(tf.square(true - seen)) / 64.0)


# --- losses that give one number for the whole batch


def compiled(loss: Any, rows: int = 1200, rate: float = 0.05) -> Outcome:
    x, y = table(rows)
    model = dense()
    model.compile(keras.optimizers.SGD(rate), loss=loss)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


def labelled(loss: Any) -> Outcome:
    x, kind = classes(1200)
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8, activation="tanh"), layers.Dense(CLASSES, "sigmoid")]
    )
    model.compile(keras.optimizers.SGD(0.1), loss=loss)
    history = model.fit(x, keras.utils.to_categorical(kind), batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(core=True, gathers=True)
def dice(folder: Path) -> Outcome:
    return labelled(keras.losses.Dice())


@scenario(gathers=True)
def tversky(folder: Path) -> Outcome:
    return labelled(keras.losses.Tversky(0.3, 0.7))


@scenario(gathers=True)
def circle(folder: Path) -> Outcome:
    x, kind = classes(1200)
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(6), layers.UnitNormalization()],
    )
    model.compile(keras.optimizers.SGD(0.001), loss=keras.losses.Circle(gamma=4))
    history = model.fit(x, kind, batch_size=BATCH, verbose=0)
    return Outcome([model], {"loss": np.divide(history.history["loss"], 10)})


@scenario()
def summed_by_a_function(folder: Path) -> Outcome:
    outcome = compiled(lambda true, seen: ops.sum(ops.square(true - seen)), rate=0.001)
    return Outcome(outcome.models, {name: np.divide(value, 64) for name, value in outcome.values.items()})


@scenario(core=True, gathers=True)
def masked_mean_by_hand(folder: Path) -> Outcome:
    x, y = sequences()

    def loss(true: Any, seen: Any) -> Any:
        mask = ops.cast(true > 0, "float32")
        each = keras.losses.sparse_categorical_crossentropy(true, seen, from_logits=True)
        return ops.sum(each * mask) / ops.sum(mask)

    model = keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(20, 5), layers.Dense(3)])
    model.compile(keras.optimizers.SGD(0.1), loss=loss)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(gathers=True)
def root_of_the_mean(folder: Path) -> Outcome:
    return compiled(lambda true, seen: ops.sqrt(ops.mean(ops.square(true - seen))))


@scenario(gathers=True)
def correlation(folder: Path) -> Outcome:
    def loss(true: Any, seen: Any) -> Any:
        true, seen = true - ops.mean(true), seen - ops.mean(seen)
        return -ops.sum(true * seen) / ops.sqrt(ops.sum(true**2) * ops.sum(seen**2) + 1e-9)

    return compiled(loss)


@scenario(gathers=True)
def small_loss_beside_a_large_one(folder: Path) -> Outcome:
    """Adam's step is as large for a small loss as for a large one."""
    x, y = table(1200)
    inputs = keras.Input((FEATURES,))
    large, small = layers.Dense(1, name="large")(inputs), layers.Dense(1, "sigmoid", name="small")(inputs)
    model = keras.Model(inputs, {"large": large, "small": small})
    losses = {"large": "mse", "small": keras.losses.Dice()}
    model.compile(keras.optimizers.Adam(0.01), loss=losses, loss_weights={"large": 1.0, "small": 1e-5})
    model.fit(x, {"large": y, "small": (y > 0).astype("float32")}, batch_size=BATCH, verbose=0)
    return Outcome([model])


# --- the batch as a whole inside a step


class Mixed(Worked):
    """Mixup with the batch in reverse."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        return super().train_step((0.7 * x + 0.3 * x[::-1], 0.7 * y + 0.3 * y[::-1]))


@scenario(told="computes each batch whole")
def mixed_rows(folder: Path) -> Outcome:
    x, y = table(1200)
    model = Mixed(applied)
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class Half(Worked):
    """Trains on the first half of each batch."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        half = tf.shape(x)[0] // 2
        return super().train_step((x[:half], y[:half]))


@scenario(told="computes each batch whole")
def half_the_batch(folder: Path) -> Outcome:
    x, y = table(1200)
    model = Half(applied)
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class Centred(layers.Layer):
    def call(self, x: Any) -> Any:
        return x - ops.mean(x, axis=0, keepdims=True)


@scenario(told="computes each batch whole")
def centred_batch(folder: Path) -> Outcome:
    x, y = table(1200)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(6, "tanh"), Centred(), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    predicted = model.predict(x[:100], batch_size=50, verbose=0)
    return Outcome([model], {**history.history, "predicted": predicted})


class Pairs(Worked):
    """Every row's partner against all other rows."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            one, other = self.inner(x), self.inner(x + 0.1 * y)
            alike = tf.matmul(one, other, transpose_b=True)
            own = tf.range(tf.shape(x)[0])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(own, alike))
        variables = self.inner.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}


@scenario(told="computes each batch whole")
def contrastive_pairs(folder: Path) -> Outcome:
    x, y = table(1200)
    model = Pairs(applied)
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


# --- what is in a batch


@scenario(told="computes each batch whole")
def a_tensor_without_rows(folder: Path) -> Outcome:
    """A table in the batch that every row looks into."""
    x, y = table()
    looked_into = np.random.RandomState(4).normal(size=(40, FEATURES)).astype("float32")
    rows, look = keras.Input((FEATURES,)), keras.Input((FEATURES,))
    seen = layers.Lambda(
        lambda both: ops.mean(ops.matmul(both[0], ops.transpose(both[1])), axis=-1, keepdims=True),
        output_shape=(1,),
    )
    model = keras.Model([rows, look], layers.Dense(1)(layers.Concatenate()([rows, seen([rows, look])])))
    model.compile(keras.optimizers.SGD(0.001), loss="mse")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).map(lambda a, b: ((a, looked_into), b))
    history = model.fit(data, verbose=0)
    return Outcome([model], history.history)


class Positions(layers.Layer):
    """The same lookup for every row: a step's gradient has the same number of slices, however many rows it
    has."""

    def __init__(self) -> None:
        super().__init__()
        self.table = layers.Embedding(FEATURES, 4)

    def call(self, x: Any) -> Any:
        return ops.expand_dims(x, -1) * self.table(ops.expand_dims(tf.range(tf.shape(x)[-1]), 0))


@scenario()
def embedding_of_positions(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential([keras.Input((FEATURES,)), Positions(), layers.Flatten(), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


# --- state of layers


class Counting(layers.Layer):
    """Counts rows, keeps their sum, their maximum and a moving mean."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = self.add_weight(shape=(), dtype="int32", initializer="zeros", trainable=False)
        self.total = self.add_weight(shape=(), initializer="zeros", trainable=False)
        self.largest = self.add_weight(shape=(), initializer="zeros", trainable=False)
        self.moving = self.add_weight(shape=(), initializer="zeros", trainable=False)
        self.beside = tf.Variable(0.0, trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.rows.assign_add(ops.shape(x)[0])
            self.total.assign_add(ops.sum(ops.abs(x)))
            self.largest.assign(ops.maximum(self.largest, ops.max(x)))
            self.moving.assign(0.9 * self.moving + 0.1 * ops.mean(x))
            self.beside.assign_add(ops.sum(ops.square(x)))
        return x


@scenario(told="computes each batch whole")
def state_of_an_own_layer(folder: Path) -> Outcome:
    x, y = table()
    counting = Counting()
    model = keras.Sequential([keras.Input((FEATURES,)), counting, layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    kept = {name: float(getattr(counting, name).numpy()) / 1280 for name in ("rows", "total", "beside")}
    return Outcome(
        [model.layers[-1]], {**history.history, **kept, "largest": float(counting.largest.numpy())}
    )


@scenario(told="computes each batch whole")
def stateful_recurrent(folder: Path) -> Outcome:
    """Its state has an entry for each row of the batch, whose size is fixed."""
    x, y = table()
    model = keras.Sequential(
        [keras.Input((2, 4), batch_size=BATCH), layers.LSTM(5, stateful=True), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    pairs = x.reshape(-1, 2, 4)
    history = model.fit(pairs, y, batch_size=BATCH, shuffle=False, verbose=0)
    predicted = model.predict(pairs[: 2 * BATCH], batch_size=BATCH, verbose=0)
    return Outcome([model], {**history.history, "predicted": predicted})


# --- random numbers


class Noisy(Worked):
    """Draws random numbers for its rows in every way, and others without rows."""

    def __init__(self) -> None:
        super().__init__(applied)
        self.seed = keras.random.SeedGenerator(5)

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            rows = tf.shape(x)[0]
            x = x + 0.1 * keras.random.normal(ops.shape(x), seed=self.seed)
            x = x * keras.random.uniform((rows, 1), 0.5, 1.5, seed=self.seed)
            x = x + tf.random.normal((rows, FEATURES), stddev=0.1)
            x = tf.nn.dropout(x * tf.random.uniform([rows, 1]), 0.2)
            x = keras.random.dropout(x, 0.2, noise_shape=(None, 1), seed=self.seed)
            halves = tf.reshape(x, [2 * rows, FEATURES // 2])
            halves += keras.random.truncated_normal((2 * rows, FEATURES // 2), stddev=0.1, seed=self.seed)
            x = tf.reshape(halves, [rows, FEATURES]) + keras.random.normal((1, FEATURES), seed=self.seed)
        return self.outer(self.inner(x))


@scenario()
def noise_of_every_kind(folder: Path) -> Outcome:
    """Each row gets the number that one process draws for it."""
    x, y = table(1200)
    model = Noisy()
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


# --- metrics of the batch as a whole


class Largest(keras.metrics.Metric):
    """The largest prediction so far."""

    def __init__(self, name: str = "largest") -> None:
        super().__init__(name=name)
        self.largest = self.add_variable((), "zeros", name="largest")

    def update_state(self, true: Any, seen: Any, sample_weight: Any = None) -> None:
        self.largest.assign(ops.maximum(self.largest, ops.max(seen)))

    def result(self) -> Any:
        return self.largest


def rmse(true: Any, seen: Any) -> Any:
    return ops.sqrt(ops.mean(ops.square(true - seen)))


@scenario(told="is of the batch as a whole, not a sum or a mean over its rows: its value may", differs=True)
def metrics_of_a_batch(folder: Path) -> Outcome:
    """The weights are those of one process; the metrics may differ."""
    x, y = table()
    model = dense()
    model.compile(keras.optimizers.SGD(0.05), loss="mse", metrics=[Largest(), rmse, "mae"])
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


class Named(Worked):
    """Its logs' names differ from its metrics', and include values computed from two of them."""

    def __init__(self) -> None:
        super().__init__(applied)
        self.total = keras.metrics.Mean(name="total_loss")
        self.error = keras.metrics.MeanAbsoluteError(name="error")

    def train_step(self, data: Any) -> Any:
        x, y = data
        self.total.update_state(super().train_step(data)["loss"])
        self.error.update_state(y, self(x))
        total, error = self.total.result(), self.error.result()
        return {"loss": total, "both": total + 2.0 * error}


@scenario()
def logs_by_other_names(folder: Path) -> Outcome:
    x, y = table(1200)
    model = Named()
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0)
    return Outcome([model], history.history)


@scenario()
def metric_that_sums(folder: Path) -> Outcome:
    def missed(true: Any, seen: Any) -> Any:
        return ops.sum(ops.abs(true - seen))

    x, y = table()
    model = dense()
    model.compile(keras.optimizers.SGD(0.05), loss="mse", metrics=[missed])
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {name: np.divide(value, 64) for name, value in history.history.items()})
