"""Methods from papers as people write them in Keras, chosen without knowledge of the engine: with a part that
depends on the batch as a whole from the start, from some step on, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.registry import BATCH, FEATURES, ROWS, Outcome, classes, scenario, table


def _dense(outputs: int = 1, last: str | None = None, **hidden: Any) -> Any:
    return keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(8, "tanh", **hidden),
            layers.Dense(outputs, activation=last),
        ]
    )


def _fitted(model: Any, x: Any, y: Any = None, epochs: int = 1, **options: Any) -> Outcome:
    model.fit(x, y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0, **options)
    return Outcome([model])


def _sgd(rate: float = 0.05) -> Any:
    return keras.optimizers.SGD(rate)


class Own(keras.Model):
    """A model with a custom step; `loss_of` also receives the step's number."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.inner = _dense(outputs)

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def loss_of(self, x: Any, y: Any, step: Any) -> Any:
        raise NotImplementedError

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(x, y, self.optimizer.iterations)
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}


class FreeBits(layers.Layer):
    """A Gaussian sample. Of each latent dimension, only the mean divergence above `least` counts."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self.least = least
        self.seeds = keras.random.SeedGenerator(3)

    def call(self, mean_and_log: Any) -> Any:
        mean, log = ops.split(mean_and_log, 2, axis=-1)
        apart = 0.5 * ops.mean(ops.square(mean) + ops.exp(log) - log - 1.0, axis=0)
        self.add_loss(0.1 * ops.sum(ops.maximum(apart, self.least)))
        return mean + ops.exp(0.5 * log) * keras.random.normal(ops.shape(mean), seed=self.seeds)


@scenario(once=True, told="audit")
def latent_dimensions_with_free_bits(folder: Path) -> Outcome:
    """Kingma et al. 2016: at first all dimensions are below the threshold, which is a constant."""
    inner = [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(6)]
    model = keras.Sequential([*inner, FreeBits(0.6), layers.Dense(FEATURES)])
    model.compile(_sgd(0.3), loss="mse")
    x, _ = table()
    return _fitted(model, x, 3.0 * x)


class Coteaching(keras.Model):
    """Han et al. 2018: each of two networks learns from the rows on which the other's loss is smallest."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = _dense(3), _dense(3)
        self.forget = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, x: Any) -> Any:
        return self.one(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        kept = tf.cast((1.0 - self.forget) * tf.cast(tf.shape(x)[0], "float32"), "int32")
        with tf.GradientTape() as tape:
            one, other = (
                keras.losses.sparse_categorical_crossentropy(y, net(x, training=True), from_logits=True)
                for net in (self.one, self.other)
            )
            easy, simple = tf.argsort(one)[:kept], tf.argsort(other)[:kept]
            loss = tf.reduce_mean(tf.gather(one, simple)) + tf.reduce_mean(tf.gather(other, easy))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


@scenario(once=True, told="audit")
def coteaching_that_forgets_more_by_epoch(folder: Path) -> Outcome:
    model = Coteaching()
    model.compile(_sgd())
    forget = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: model.forget.assign(min(0.15 * epoch, 0.3))
    )
    x, y = classes(ROWS // 2)
    return _fitted(model, x, y, 3, callbacks=[forget])


class Decorrelated(Own):
    """VICReg's variance and covariance terms, whose weight grows from 0 with the steps."""

    def loss_of(self, x: Any, y: Any, step: Any) -> Any:
        seen = self.inner(x, training=True)
        centred = seen - tf.reduce_mean(seen, 0)
        rows = tf.cast(tf.shape(x)[0], "float32")
        spread = tf.sqrt(tf.reduce_sum(centred**2, 0) / (rows - 1.0) + 1e-4)
        shared = tf.linalg.set_diag(tf.matmul(centred, centred, transpose_a=True) / (rows - 1.0), [0.0] * 4)
        ramp = tf.minimum(tf.cast(step, "float32") / 10.0, 1.0)
        return tf.reduce_mean((seen - y) ** 2) + ramp * (
            0.2 * tf.reduce_mean(tf.nn.relu(1.0 - spread)) + 0.1 * tf.reduce_sum(shared**2)
        )


@scenario(once=True, told="audit")
def covariance_that_is_ramped_up(folder: Path) -> Outcome:
    model = Decorrelated(4)
    model.compile(_sgd())
    x, _ = table()
    return _fitted(model, x, x[:, :4])


class Momentum(keras.Model):
    """MoCo: keys from a slow copy of the encoder; earlier batches' keys wait in a queue as negatives."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.slow = _dense(4), _dense(4)
        self.slow.trainable = False
        self.slow.set_weights(self.encoder.get_weights())
        self.queue = self.add_weight(shape=(2 * BATCH, 4), initializer="random_normal", trainable=False)

    def call(self, x: Any) -> Any:
        return self.encoder(x)

    def train_step(self, x: Any) -> Any:
        keys = tf.math.l2_normalize(self.slow(x[:, ::-1]), -1)
        with tf.GradientTape() as tape:
            queries = tf.math.l2_normalize(self.encoder(x, training=True), -1)
            own = tf.reduce_sum(queries * keys, -1, keepdims=True)
            logits = tf.concat(
                [own, tf.matmul(queries, tf.convert_to_tensor(self.queue), transpose_b=True)], 1
            )
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    tf.zeros(tf.shape(x)[:1], "int32"), logits / 0.2
                )
            )
        variables = self.encoder.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        for slow, fast in zip(self.slow.weights, self.encoder.weights, strict=True):
            slow.assign(0.9 * slow + 0.1 * fast)
        self.queue.assign(tf.concat([keys, self.queue[: -tf.shape(keys)[0]]], 0))
        return {"loss": loss}


@scenario(once=True, told="whole")
def keys_of_earlier_batches_in_a_queue(folder: Path) -> Outcome:
    model = Momentum()
    model.compile(_sgd())
    return _fitted(model, table()[0])


class Ensembled(Own):
    """Temporal ensembling: each row's earlier predictions are kept by its number."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = self.add_weight(shape=(ROWS // 2, 1), initializer="zeros", trainable=False)

    def loss_of(self, x: Any, y: Any, step: Any) -> Any:
        features, numbers = x
        seen = self.inner(features, training=True)
        before = tf.gather(tf.convert_to_tensor(self.kept), numbers)
        now = 0.6 * before + 0.4 * tf.stop_gradient(seen)
        self.kept.assign(tf.tensor_scatter_nd_update(self.kept, numbers[:, None], now))
        later = tf.cast(step >= ROWS // 2 // BATCH, "float32")
        return tf.reduce_mean(tf.square(seen - y)) + later * tf.reduce_mean(tf.square(seen - before))


@scenario(once=True, told="whole")
def predictions_kept_by_row(folder: Path) -> Outcome:
    model = Ensembled()
    model.compile(_sgd())
    x, y = table(ROWS // 2)
    return _fitted(model, (x, np.arange(len(x), dtype="int32")), y, 2)


class Balanced(keras.Model):
    """GradNorm: two tasks' weights follow the norms of their gradients in the shared layer."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = layers.Dense(8, "tanh")
        self.heads = [layers.Dense(1), layers.Dense(1)]
        self.of_tasks = self.add_weight(shape=(2,), initializer="ones", trainable=False)

    def call(self, x: Any) -> Any:
        return [head(self.shared(x)) for head in self.heads]

    def train_step(self, data: Any) -> Any:
        x, targets = data
        with tf.GradientTape(persistent=True) as tape:
            seen = self(x, training=True)
            losses = [tf.reduce_mean((a - b) ** 2) for a, b in zip(seen, targets, strict=True)]
            loss = tf.reduce_sum(self.of_tasks * tf.stack(losses))
        norms = tf.stack([tf.norm(tape.gradient(each, self.shared.kernel)) for each in losses])
        variables = [*self.shared.variables, *(each for head in self.heads for each in head.variables)]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        sized = self.of_tasks * norms
        moved = self.of_tasks - 0.1 * tf.sign(sized - tf.reduce_mean(sized)) * norms
        self.of_tasks.assign(2.0 * moved / tf.reduce_sum(moved))
        return {"loss": loss}


@scenario(once=True)
def weights_of_tasks_by_norms_of_gradients(folder: Path) -> Outcome:
    model = Balanced()
    model.compile(_sgd())
    x, y = table()
    return _fitted(model, x, (y, x[:, :1] ** 2))


class PathLength(Own):
    """StyleGAN 2's path length: each row's slope is drawn to a moving mean over batches, at every fourth
    step."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def loss_of(self, x: Any, y: Any, step: Any) -> Any:
        def penalty() -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                seen = tf.reduce_sum(self.inner(x))
            lengths = tf.sqrt(tf.reduce_sum(tf.square(tape.gradient(seen, x)), 1) + 1e-8)
            mean = self.mean + 0.1 * (tf.reduce_mean(lengths) - self.mean)
            self.mean.assign(tf.stop_gradient(mean))
            return 0.5 * tf.reduce_mean(tf.square(lengths - mean))

        near = tf.reduce_mean(tf.square(self.inner(x) - y))
        return near + tf.cond(tf.equal(step % 4, 3), penalty, lambda: 0.0)


@scenario(once=True, told="whole")
def length_of_paths_at_every_fourth_step(folder: Path) -> Outcome:
    model = PathLength()
    model.compile(_sgd())
    return _fitted(model, *table())


class ActNorm(layers.Layer):
    """Glow's activation normalisation: the first batch determines a scale and a bias, which then learn."""

    def build(self, shape: Any) -> None:
        self.bias = self.add_weight(shape=shape[-1:], initializer="zeros")
        self.scale = self.add_weight(shape=shape[-1:], initializer="ones")
        self.begun = self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        def begin() -> Any:
            self.bias.assign(-tf.reduce_mean(x, 0))
            self.scale.assign(1.0 / (tf.math.reduce_std(x, 0) + 1e-3))
            self.begun.assign(1)
            return 0

        if training:
            tf.cond(tf.equal(self.begun, 0), begin, lambda: 0)
        return (x + self.bias) * self.scale


@scenario(once=True, told="whole")
def scale_from_the_first_batch(folder: Path) -> Outcome:
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8), ActNorm(), layers.Activation("tanh"), layers.Dense(1)]
    )
    model.compile(_sgd(), loss="mse")
    return _fitted(model, *table())


def spearman(true: Any, seen: Any) -> Any:
    """The correlation of ranks within the batch."""
    ranks = [ops.cast(ops.argsort(ops.argsort(each[:, 0])), "float32") for each in (true, seen)]
    one, other = (rank - ops.mean(rank) for rank in ranks)
    return ops.mean(one * other) / ops.sqrt(ops.mean(one**2) * ops.mean(other**2))


@scenario(once=True, exact=False, told="spearman", differs=True)
def rate_by_a_correlation_of_ranks(folder: Path) -> Outcome:
    model = _dense()
    model.compile(_sgd(0.2), loss="mse", metrics=[spearman])
    slower = keras.callbacks.ReduceLROnPlateau("spearman", mode="max", patience=1, min_delta=0.02)
    return _fitted(model, *table(ROWS // 2), 4, callbacks=[slower])


class SometimesMixed(Own):
    """Mixup within the step, in about a third of the steps."""

    def loss_of(self, x: Any, y: Any, step: Any) -> Any:
        order = tf.argsort(tf.random.uniform(tf.shape(x)[:1]))
        share = tf.where(tf.random.uniform([]) < 0.3, 0.7, 1.0)
        mixed_x = share * x + (1.0 - share) * tf.gather(x, order)
        mixed_y = share * y + (1.0 - share) * tf.gather(y, order)
        return tf.reduce_mean(tf.square(self.inner(mixed_x, training=True) - mixed_y))


@scenario(once=True, told="whole")
def mixup_in_a_third_of_the_steps(folder: Path) -> Outcome:
    model = SometimesMixed()
    model.compile(_sgd())
    return _fitted(model, *table())


@scenario(once=True, gathers=True)
def partial_likelihood_of_survivors(folder: Path) -> Outcome:
    """Cox: each event is compared with the rows of the batch that lived at least as long."""

    def loss(true: Any, risk: Any) -> Any:
        lived, died = true[:, :1], true[:, 1:]
        among = ops.cast(ops.transpose(lived) >= lived, "float32")
        exceeds = ops.log(ops.matmul(among, ops.exp(risk)))
        return -ops.sum(died * (risk - exceeds)) / ops.maximum(ops.sum(died), 1.0)

    x, y = table()
    died = np.random.RandomState(4).uniform(size=y.shape) < 0.4
    model = _dense()
    model.compile(_sgd(), loss=loss)
    return _fitted(model, x, np.concatenate([np.exp(y), died], 1).astype("float32"))
