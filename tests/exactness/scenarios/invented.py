"""More scripts as people write them, with a part that depends on the batch as a whole, or seems to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from core.trainer.exact.patch import predict
from tests.exactness.scenarios.registry import BATCH, FEATURES, ROWS, Outcome, classes, scenario, table


def _dense(outputs: int = 1, last: str | None = None, *more: Any) -> Any:
    return keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), *more, layers.Dense(outputs, activation=last)]
    )


def _fitted(model: Any, x: Any, y: Any, epochs: int = 2, **options: Any) -> Outcome:
    model.fit(x, y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0, **options)
    return Outcome([model])


def _sgd(rate: float = 0.05) -> Any:
    return keras.optimizers.SGD(rate)


@scenario(once=True, told="audit")
def detector_with_few_objects(folder: Path) -> Outcome:
    """A focal loss divided by the number of positives, at least one: as in detectors."""

    def loss(true: Any, seen: Any) -> Any:
        each = ops.binary_crossentropy(true, seen) * ops.square(ops.abs(true - seen))
        return 0.1 * ops.sum(each) / ops.maximum(ops.sum(true), 1.0)

    x, _ = table()
    there = np.random.RandomState(2).uniform(size=(ROWS, 1)) < 0.06
    there[: 3 * BATCH] = False
    model = _dense(1, "sigmoid")
    model.compile(_sgd(), loss=loss)
    return _fitted(model, x, there.astype("float32"))


@scenario(once=True, told="audit")
def reversed_huber(folder: Path) -> Outcome:
    """BerHu: the threshold to squares depends on the largest error of the batch, once that is large."""

    def loss(true: Any, seen: Any) -> Any:
        far = ops.abs(true - seen)
        turn = ops.maximum(1.5, 0.2 * ops.max(far))
        return ops.mean(ops.where(far <= turn, far, (ops.square(far) + turn * turn) / (2.0 * turn)))

    x, y = table()
    y[7 * BATCH + 3 :: 301] = 20.0
    model = _dense()
    model.compile(_sgd(), loss=loss)
    return _fitted(model, x, y)


@scenario(once=True, told="audit")
def batches_that_are_left_out_where_not_finite(folder: Path) -> Outcome:
    """A batch with an invalid target contributes nothing."""

    def loss(true: Any, seen: Any) -> Any:
        found = ops.mean(ops.square(ops.where(ops.isfinite(true), true, 0.0) - seen))
        return ops.where(ops.all(ops.isfinite(true)), found, 0.0 * found)

    x, y = table()
    y[[8 * BATCH + 3, 11 * BATCH + 60]] = np.nan
    model = _dense()
    model.compile(_sgd(), loss=loss)
    return _fitted(model, x, y)


@scenario(once=True, told="audit")
def mixup_that_a_callback_begins(folder: Path) -> Outcome:
    class Mixes(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.own = self.add_weight(shape=(), initializer="ones", trainable=False)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.own * x + (1.0 - self.own) * ops.flip(x, 0) if training else x

    mixes = Mixes()
    begin = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: mixes.own.assign(1.0 if epoch == 0 else 0.8)
    )
    model = keras.Sequential([keras.Input((FEATURES,)), mixes, layers.Dense(8, "tanh"), layers.Dense(1)])
    model.compile(_sgd(), loss="mse")
    return _fitted(model, *table(), callbacks=[begin])


class Stepped(keras.Model):
    """A model with a custom step as in Keras' guide."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.inner = keras.Sequential(
            [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(outputs)]
        )

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def loss_of(self, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = self.loss_of(*data)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


@scenario(once=True)
def penalty_at_every_eighth_step(folder: Path) -> Outcome:
    """R1 as in StyleGAN, lazily: from each row's own gradient."""

    class Lazy(Stepped):
        def loss_of(self, x: Any, y: Any) -> Any:
            def penalty() -> Any:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    score = tf.reduce_sum(self(x))
                slopes = tape.gradient(score, x)
                return tf.reduce_mean(tf.reduce_sum(tf.square(slopes), 1))

            later = tf.equal(self.optimizer.iterations % 8, 7)
            return tf.reduce_mean(tf.square(self(x) - y)) + tf.cond(later, penalty, lambda: 0.0)

    model = Lazy()
    model.compile(_sgd())
    return _fitted(model, *table())


@scenario(once=True, told="audit")
def easiest_rows_first(folder: Path) -> Outcome:
    """A curriculum: all rows at first; from the tenth step on only those with a moderate error."""

    class Curriculum(Stepped):
        def loss_of(self, x: Any, y: Any) -> Any:
            each = tf.reduce_mean(tf.square(self(x) - y), -1)
            most = tf.reduce_mean(each) + tf.math.reduce_std(each)
            kept = tf.cast((each <= most) | (self.optimizer.iterations < 10), "float32")
            return tf.reduce_sum(kept * each) / tf.reduce_sum(kept)

    model = Curriculum()
    model.compile(_sgd())
    return _fitted(model, *table())


@scenario(once=True, told="whole")
def divided_by_its_moving_mean(folder: Path) -> Outcome:
    class Scaled(Stepped):
        def __init__(self) -> None:
            super().__init__()
            self.mean = self.add_weight(shape=(), initializer="ones", trainable=False)

        def loss_of(self, x: Any, y: Any) -> Any:
            loss = tf.reduce_mean(tf.square(self(x) - y))
            self.mean.assign(0.9 * self.mean + 0.1 * tf.stop_gradient(loss))
            return loss / self.mean

    model = Scaled()
    model.compile(_sgd())
    return _fitted(model, *table())


@scenario(once=True, told="audit")
def loop_that_turns_a_weight_up(folder: Path) -> Outcome:
    """Batch by batch; the script increases a term halfway through."""
    weight = tf.Variable(0.0, trainable=False)
    model = _dense()
    model.compile(_sgd(), loss=lambda true, seen: ops.mean(ops.square(true - seen)) + weight * ops.std(seen))
    x, y = table()
    for step in range(20):
        weight.assign(0.0 if step < 10 else 0.5)
        model.train_on_batch(x[step * BATCH : (step + 1) * BATCH], y[step * BATCH : (step + 1) * BATCH])
    return Outcome([model])


@scenario(once=True, told="audit")
def loop_with_rare_targets(folder: Path) -> Outcome:
    """Batch by batch; the divisor counts valid targets, all of which are valid at first."""

    def loss(true: Any, seen: Any) -> Any:
        there = ops.cast(true < 50.0, "float32")
        return ops.sum(there * ops.square(true - seen)) / ops.sum(there)

    model = _dense()
    model.compile(_sgd(), loss=loss)
    x, y = table()
    y[6 * BATCH + 5 :: 7] = 99.0
    for step in range(20):
        model.train_on_batch(x[step * BATCH : (step + 1) * BATCH], y[step * BATCH : (step + 1) * BATCH])
    return Outcome([model])


@scenario(once=True)
def weights_of_losses_that_follow_them(folder: Path) -> Outcome:
    """Dynamic weight averaging: after each epoch, the task that improves least gets the largest weight."""
    counts = [tf.Variable(1.0, trainable=False), tf.Variable(1.0, trainable=False)]

    class Follow(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[list[float]] = []

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seen.append([logs["a_loss"], logs["b_loss"]])
            if len(self.seen) > 1:
                falls = np.exp(np.array(self.seen[-1]) / np.array(self.seen[-2]) / 2.0)
                for count, value in zip(counts, 2 * falls / falls.sum(), strict=True):
                    count.assign(value)

    inner = keras.Input((FEATURES,))
    hidden = layers.Dense(8, "tanh")(inner)
    outputs = {"a": layers.Dense(1, name="a")(hidden), "b": layers.Dense(1, name="b")(hidden)}
    model = keras.Model(inner, outputs)
    model.compile(
        _sgd(),
        loss={
            "a": lambda true, seen: counts[0] * ops.mean(ops.square(true - seen), -1),
            "b": lambda true, seen: counts[1] * ops.mean(ops.abs(true - seen), -1),
        },
    )
    x, y = table()
    return _fitted(model, x, {"a": y, "b": x[:, :1] ** 2}, 4, callbacks=[Follow()])


@scenario(once=True)
def rate_that_halves_where_the_loss_leaps(folder: Path) -> Outcome:
    class Halve(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.best = 1e9

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if logs["loss"] > 1.02 * self.best:
                self.model.optimizer.learning_rate.assign(0.9 * self.model.optimizer.learning_rate)
            self.best = min(self.best, logs["loss"])

    model = _dense()
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    return _fitted(model, *table(), callbacks=[Halve()])


@scenario(once=True, told="audit")
def rare_class_that_is_weighted_by_its_count(folder: Path) -> Outcome:
    def loss(true: Any, seen: Any) -> Any:
        each = ops.sparse_categorical_crossentropy(true, seen, from_logits=True)
        rare = ops.cast(true == 2, "float32")
        count = ops.sum(rare)
        weights = 1.0 + rare * (0.2 * BATCH / ops.maximum(count, 1.0))
        return ops.mean(weights * each)

    x, y = table()
    kinds = (y[:, 0] > 0).astype("int32")
    kinds[9 * BATCH + 1 :: 23] = 2
    model = _dense(3)
    model.compile(_sgd(), loss=loss)
    return _fitted(model, x, kinds)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _standardised_back(x: Any, begun: Any) -> Any:
    def back(upstream: Any) -> Any:
        even = (upstream - tf.reduce_mean(upstream, 0)) / (tf.math.reduce_std(upstream, 0) + 1e-6)
        return tf.where(begun, 0.01 * even, upstream), None

    return tf.identity(x), back


@scenario(once=True, told="audit")
def gradient_that_is_evened_later(folder: Path) -> Outcome:
    class Evened(Stepped):
        def loss_of(self, x: Any, y: Any) -> Any:
            seen = self.inner.layers[1](
                _standardised_back(self.inner.layers[0](x), self.optimizer.iterations >= 6)
            )
            return tf.reduce_mean(tf.square(seen - y))

    model = Evened()
    model.compile(_sgd())
    return _fitted(model, *table())


@scenario(once=True)
def optimizer_that_normalises(folder: Path) -> Outcome:
    """LARS by hand: each layer's gradient is scaled to its weights' norm."""

    class Lars(keras.optimizers.SGD):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            size = ops.norm(ops.reshape(variable, (-1,))) / (ops.norm(ops.reshape(gradient, (-1,))) + 1e-9)
            super().update_step(ops.where(size > 0, size, 1.0) * gradient, variable, learning_rate)

    model = _dense()
    model.compile(Lars(0.01, momentum=0.9), loss="mse")
    return _fitted(model, *table())


@scenario(once=True)
def gradients_of_two_steps_together(folder: Path) -> Outcome:
    """Lookahead: at every fifth step the weights go halfway back to their earlier values."""

    class Ahead(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.slow = self.model.get_weights()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch % 5 == 4:
                self.slow = [0.5 * (a + b) for a, b in zip(self.slow, self.model.get_weights(), strict=True)]
                self.model.set_weights(self.slow)

    model = _dense()
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    return _fitted(model, *table(), callbacks=[Ahead()])


@scenario(once=True, told="audit")
def temperature_that_follows_the_batch(folder: Path) -> Outcome:
    """A softmax whose temperature is the batch's largest logit, once that exceeds 2."""

    class Tempered(layers.Layer):
        def call(self, x: Any) -> Any:
            return x / ops.maximum(ops.max(ops.abs(x)) / 1.2, 1.0)

    x, y = table()
    kinds = np.digitize(y[:, 0], [-0.3, 0.3]).astype("int32")
    inner = [keras.Input((FEATURES,)), layers.Dense(3, kernel_initializer="zeros"), Tempered()]
    model = keras.Sequential(inner)
    model.compile(_sgd(0.8), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return _fitted(model, x, kinds, 4)


@scenario(once=True)
def noise_of_tf_random_in_a_long_fit(folder: Path) -> Outcome:
    class Noisy(Stepped):
        def loss_of(self, x: Any, y: Any) -> Any:
            return tf.reduce_mean(tf.square(self(x + tf.random.normal(tf.shape(x), stddev=0.1)) - y))

    model = Noisy()
    model.compile(_sgd())
    return _fitted(model, *table(), 3)


@scenario(once=True, told="audit")
def prints_a_loss_of_missing_targets(folder: Path) -> Outcome:
    """A tf.print from debugging was left in."""

    class Printing(Stepped):
        def loss_of(self, x: Any, y: Any) -> Any:
            there = tf.cast(y < 50.0, "float32")
            loss = tf.reduce_sum(there * tf.square(self(x) - y)) / tf.reduce_sum(there)
            tf.print("loss", loss)
            return loss

    x, y = table()
    y[6 * BATCH + 5 :: 7] = 99.0
    model = Printing()
    model.compile(_sgd())
    return _fitted(model, x, y)


@scenario(once=True, told="audit")
def noise_and_missing_targets(folder: Path) -> Outcome:
    class Noisy(Stepped):
        def loss_of(self, x: Any, y: Any) -> Any:
            there = tf.cast(y < 50.0, "float32")
            seen = self(x + tf.random.normal(tf.shape(x), stddev=0.1))
            return tf.reduce_sum(there * tf.square(seen - y)) / tf.reduce_sum(there)

    x, y = table()
    y[6 * BATCH + 5 :: 7] = 99.0
    model = Noisy()
    model.compile(_sgd())
    return _fitted(model, x, y)


class Corrected(keras.Model):
    """Corrects its predictions where one class dominates the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(3)])

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def predict_step(self, data: Any) -> Any:
        x = data[0] if isinstance(data, tuple) else data
        seen = ops.softmax(self(x))
        share = ops.mean(seen, axis=0)
        even = seen / share
        return ops.where(ops.max(share) > 0.8, even / ops.sum(even, axis=1, keepdims=True), seen)

    def learn(self) -> Any:
        """Learns classes; returns further rows, in whose batches one dominates from the fourth one on."""
        x, y = classes(ROWS + 600)
        (x, more), (y, kinds) = np.split(x, [ROWS]), np.split(y, [ROWS])
        self.compile(_sgd(1.0), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        self.fit(x, y, batch_size=BATCH, epochs=6, shuffle=False, verbose=0)
        return more[np.r_[: 3 * BATCH, 3 * BATCH + np.argsort(kinds[3 * BATCH :], kind="stable")]]


@scenario(once=True, told="depends on the other")
def guesses_corrected_by_the_batch(folder: Path) -> Outcome:
    """A student learns a teacher's guesses."""
    model = Corrected()
    more = model.learn()
    guessed = model.predict(more, batch_size=BATCH, verbose=0)
    model.compile(_sgd(0.1), loss=keras.losses.CategoricalCrossentropy(from_logits=True))
    model.fit(more, guessed, batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
    return Outcome([model], {"guessed": guessed})


@scenario(once=True, told="Up to 3 batches", differs=True)
def guesses_that_the_script_has_already(folder: Path) -> Outcome:
    """The third batch is not checked, so it may have been wrong; it was not."""
    model = Corrected()
    more = model.learn()
    with mock.patch.object(predict, "CHECKS_FIRST_S", 0.0):
        parts = [model.predict(part, batch_size=BATCH, verbose=0) for part in np.split(more, [3 * BATCH])]
    return Outcome([model], {"guessed": np.concatenate(parts)})


class Flow(layers.Layer):
    """A differential equation, solved with steps that the error of the whole batch determines."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(
            shape=(shape[-1], shape[-1]), initializer=keras.initializers.RandomNormal(stddev=0.02, seed=2)
        )
        self.shift = self.add_weight(shape=(shape[-1],), initializer="zeros")

    def call(self, x: Any) -> Any:
        def slope(state: Any) -> Any:
            return tf.tanh(state @ tf.convert_to_tensor(self.kernel) + self.shift) * state

        def step(time: Any, length: Any, state: Any) -> Any:
            length = tf.minimum(length, 1.0 - time)
            begin = slope(state)
            end = slope(state + length * begin)
            error = tf.sqrt(tf.reduce_mean(tf.square(0.5 * length * (end - begin)))) / 0.01
            error = tf.stop_gradient(tf.maximum(error, 1e-6))
            good = error <= 1.0
            state = tf.where(good, state + 0.5 * length * (begin + end), state)
            time = tf.where(good, time + length, time)
            return time, length * tf.clip_by_value(0.9 / tf.sqrt(error), 0.2, 5.0), state

        return tf.while_loop(lambda time, *_: time < 1.0 - 1e-6, step, (0.0, 1.0, x))[2]

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


@scenario(once=True, told="audit")
def solver_whose_steps_follow_the_batch(folder: Path) -> Outcome:
    model = keras.Sequential([keras.Input((FEATURES,)), Flow(), layers.Dense(1)])
    model.compile(_sgd(0.2), loss="mse")
    x, _ = table()
    y = np.sin(3.0 * x[:, :1] * x[:, 1:2] + x[:, 2:3] ** 2 * 2.0).astype("float32")
    fitted = model.fit(
        x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0, validation_data=(x[:300], y[:300])
    )
    return Outcome([model], {"val_loss": fitted.history["val_loss"]})


@scenario(once=True, told="each batch whole")
def returns_along_the_rows(folder: Path) -> Outcome:
    """Policy gradient: a loop over the batch adds up rewards backwards; episodes of 8 rows, later of 11."""

    class Policy(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(3)])

        def call(self, x: Any) -> Any:
            return self.inner(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            action, reward, end = tf.cast(y[:, 0], tf.int32), y[:, 1], y[:, 2]
            rows = tf.shape(x)[0]

            def before(row: Any, later: Any, all_of_them: Any) -> Any:
                now = reward[row] + 0.9 * later * (1.0 - end[row])
                return row - 1, now, all_of_them.write(row, now)

            _, _, written = tf.while_loop(
                lambda row, *_: row >= 0, before, (rows - 1, 0.0, tf.TensorArray(tf.float32, rows))
            )
            returns = written.stack()
            with tf.GradientTape() as tape:
                each = tf.nn.sparse_softmax_cross_entropy_with_logits(action, self(x))
                loss = tf.reduce_mean(each * returns)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return {"loss": loss, "returns": tf.reduce_mean(returns)}

    x, action = classes()
    reward = np.random.RandomState(6).uniform(0, 1, ROWS)
    row = np.arange(ROWS)
    end = np.where(row < 10 * BATCH, row % 8 == 7, row % 11 == 10)
    model = Policy()
    model.compile(_sgd())
    fitted = model.fit(
        x, np.c_[action, reward, end].astype("float32"), batch_size=BATCH, epochs=2, shuffle=False, verbose=0
    )
    return Outcome([model], {"returns": fitted.history["returns"]})
