"""More methods as people write them in Keras, chosen without knowledge of the engine: schedules, callbacks
and layers that make the batch matter, and those that only seem to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.from_papers import Own, _dense, _fitted, _sgd
from tests.exactness.scenarios.registry import BATCH, FEATURES, ROWS, Outcome, classes, scenario, table


class Swapped(keras.Model):
    """SwAV: prototypes are assigned evenly over the batch (Sinkhorn-Knopp), by the other view's scores; they
    are frozen in the first steps."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.prototypes = _dense(4), layers.Dense(5, use_bias=False)

    def call(self, x: Any) -> Any:
        return self.prototypes(tf.math.l2_normalize(self.encoder(x), -1))

    def train_step(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            one, other = self(x, training=True), self(x + 0.1 * x[:, ::-1], training=True)
            sure = tf.exp(other / 0.5)
            for _ in range(3):
                sure /= tf.reduce_sum(sure, 0, keepdims=True)
                sure /= tf.reduce_sum(sure, 1, keepdims=True)
            each = tf.nn.softmax_cross_entropy_with_logits(tf.stop_gradient(sure), one / 0.2)
            loss = tf.reduce_mean(each)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        gradients[-1] *= tf.cast(self.optimizer.iterations >= 5, "float32")
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return {"loss": loss}


@scenario(once=True, told="whole")
def prototypes_assigned_evenly(folder: Path) -> Outcome:
    model = Swapped()
    model.compile(_sgd())
    return _fitted(model, table()[0])


class AutoClip(keras.optimizers.SGD):
    """Clips by the median norm of the gradients so far."""

    def build(self, variables: Any) -> None:
        super().build(variables)
        self.norms = self.add_variable(shape=(20,), dtype="float32", initializer="zeros", name="norms")

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        if not self.built:
            self.build(trainable_variables)
        norm = tf.linalg.global_norm(grads)
        place = self.iterations % 20
        norms = tf.tensor_scatter_nd_update(self.norms, [[place]], [norm])
        self.norms.assign(norms)
        known = tf.sort(norms, direction="DESCENDING")[: place + 1]
        grads, _ = tf.clip_by_global_norm(grads, known[(place + 1) // 2], norm)
        return super().apply(grads, trainable_variables)


@scenario(once=True)
def clipped_by_the_median_so_far(folder: Path) -> Outcome:
    model = _dense()
    model.compile(AutoClip(0.1), loss="mse")
    return _fitted(model, *table())


@scenario(once=True)
def momentum_of_batch_normalisation_by_epoch(folder: Path) -> Outcome:
    normalised = layers.BatchNormalization(momentum=0.5)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, "tanh"), normalised, layers.Dense(1)])
    model.compile(_sgd(), loss="mse")

    class Slower(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            normalised.momentum = 1.0 - 0.5 ** (epoch + 1)
            self.model.make_train_function(force=True)

    return _fitted(model, *table(ROWS // 2), 3, callbacks=[Slower()])


class Mined(keras.losses.Loss):
    """The mean over triplets of the batch; once warmed up, over each anchor's hardest pair."""

    def __init__(self) -> None:
        super().__init__()
        self.hard = tf.Variable(0.0, trainable=False)

    def call(self, true: Any, seen: Any) -> Any:
        labels = ops.reshape(true, (-1, 1))
        near = ops.cast(ops.equal(labels, ops.transpose(labels)), "float32")
        far = ops.sum(ops.square(seen[:, None] - seen[None]), -1)
        hardest = ops.max(near * far, 1) - ops.min(far + 10.0 * near, 1)
        to_own_kind = ops.sum(ops.square(seen - ops.one_hot(true, 3)), -1)
        return (1.0 - self.hard) * to_own_kind + self.hard * ops.maximum(hardest + 0.5, 0.0)


@scenario(once=True, told="audit")
def hardest_pairs_after_a_warm_up(folder: Path) -> Outcome:
    loss = Mined()
    warmed = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: loss.hard.assign(epoch > 0))
    model = _dense(3)
    model.compile(_sgd(), loss=loss)
    return _fitted(model, *classes(ROWS // 2), 2, callbacks=[warmed])


class Cautious(Own):
    """Steps are shorter where the batch's loss is small: gradients are scaled by it once they are known."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.inner(x, training=True) - y))
        variables = self.trainable_variables
        size = tf.tanh(loss)
        gradients = [size * each for each in tape.gradient(loss, variables)]
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return {"loss": loss}


@scenario(once=True, told="whole")
def gradients_scaled_by_the_loss_of_the_batch(folder: Path) -> Outcome:
    model = Cautious()
    model.compile(_sgd(0.1))
    return _fitted(model, *table())


class Hinges(keras.Model):
    """A GAN with a spectrally normalised critic, hinge losses, and a moving average of the generator."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.Sequential(
            [keras.Input((3,)), layers.Dense(8, "tanh"), layers.Dense(FEATURES)]
        )
        self.critic = keras.Sequential(
            [
                keras.Input((FEATURES,)),
                layers.SpectralNormalization(layers.Dense(8)),
                layers.LeakyReLU(0.2),
                layers.SpectralNormalization(layers.Dense(1)),
            ]
        )
        self.average = keras.models.clone_model(self.generator)
        self.average.trainable = False
        self.seeds = keras.random.SeedGenerator(5)

    def compile(self, of_generator: Any, of_critic: Any) -> None:
        super().compile()
        self.of_generator, self.of_critic = of_generator, of_critic

    def call(self, noise: Any) -> Any:
        return self.generator(noise)

    def train_step(self, real: Any) -> Any:
        noise = keras.random.normal((tf.shape(real)[0], 3), seed=self.seeds)
        with tf.GradientTape() as tape:
            right, wrong = self.critic(real, training=True), self.critic(self.generator(noise), training=True)
            of_critic = tf.reduce_mean(tf.nn.relu(1.0 - right)) + tf.reduce_mean(tf.nn.relu(1.0 + wrong))
        variables = self.critic.trainable_variables
        self.of_critic.apply(tape.gradient(of_critic, variables), variables)
        with tf.GradientTape() as tape:
            of_generator = -tf.reduce_mean(self.critic(self.generator(noise, training=True)))
        variables = self.generator.trainable_variables
        self.of_generator.apply(tape.gradient(of_generator, variables), variables)
        for slow, fast in zip(self.average.weights, self.generator.weights, strict=True):
            slow.assign(0.95 * slow + 0.05 * fast)
        return {"critic": of_critic, "generator": of_generator}


@scenario(once=True)
def critic_of_limited_slope(folder: Path) -> Outcome:
    model = Hinges()
    model.compile(_sgd(0.02), _sgd(0.05))
    return _fitted(model, table()[0])


class Aligned(Own):
    """ReMixMatch: guesses for unlabelled rows are aligned with a moving mean of the batches' predictions."""

    def __init__(self) -> None:
        super().__init__(3)
        self.seen_so_far = self.add_weight(shape=(3,), initializer="ones", trainable=False)

    def loss_of(self, x: Any, y: Any, step: Any) -> Any:
        seen = self.inner(x, training=True)
        labelled = tf.cast(y >= 0, "float32")
        guess = tf.nn.softmax(tf.stop_gradient(self.inner(x + 0.05)))
        self.seen_so_far.assign(0.9 * self.seen_so_far + 0.1 * tf.reduce_mean(guess, 0))
        guess = guess / (self.seen_so_far + 1e-6)
        guess /= tf.reduce_sum(guess, -1, keepdims=True)
        own = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(y, 0), seen)
        return tf.reduce_mean(
            labelled * own + (1.0 - labelled) * tf.nn.softmax_cross_entropy_with_logits(guess, seen)
        )


@scenario(once=True, told="whole")
def guesses_aligned_with_past_predictions(folder: Path) -> Outcome:
    x, y = classes()
    y[np.random.RandomState(3).uniform(size=len(y)) < 0.5] = -1
    model = Aligned()
    model.compile(_sgd())
    return _fitted(model, x, y)


@scenario(once=True, told="audit")
def overlap_that_takes_over_from_entropy(folder: Path) -> Outcome:
    """Segmentation: the weight of a Dice loss over the batch grows by epoch, that of the entropy falls."""
    overlap = keras.Variable(0.0, trainable=False)

    def loss(true: Any, seen: Any) -> Any:
        entropy = ops.mean(ops.binary_crossentropy(true, seen))
        common = 2.0 * ops.sum(true * seen) + 1.0
        dice = 1.0 - common / (ops.sum(true) + ops.sum(seen) + 1.0)
        return (1.0 - overlap) * entropy + overlap * dice

    random = np.random.RandomState(6)
    x = random.normal(size=(ROWS // 4, 8, 8, 1)).astype("float32")
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, padding="same", activation="tanh"),
            layers.Conv2D(1, 3, padding="same", activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01, epsilon=1e-3), loss=loss, steps_per_execution=2)
    grow = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: overlap.assign(0.3 * (epoch + 1)))
    return _fitted(model, x, (x + np.roll(x, 1, 1) > 0.3).astype("float32"), 3, callbacks=[grow])


@scenario(once=True, told="audit")
def pairs_of_rare_positives(folder: Path) -> Outcome:
    """A surrogate of the AUC: each positive against each negative; entropy where a batch has no positives."""

    def loss(true: Any, seen: Any) -> Any:
        own, rest = true, 1.0 - true
        margins = ops.square(ops.maximum(0.5 - (seen - ops.transpose(seen)), 0.0))
        pairs = ops.matmul(own, ops.transpose(rest))
        ranked = ops.sum(pairs * margins) / ops.maximum(ops.sum(pairs), 1.0)
        return ops.where(ops.any(true > 0.5), ranked, ops.mean(ops.binary_crossentropy(true, seen)))

    x, y = table()
    there = (y > 0.9).astype("float32")
    there[: 4 * BATCH] = 0.0
    model = _dense(1, "sigmoid")
    model.compile(_sgd(), loss=loss)
    return _fitted(model, x, there)


def rarely_active(active: Any) -> Any:
    """A sparse autoencoder's penalty: each unit's mean over the batch should be 0.1."""
    mean = ops.clip(ops.mean(active, 0), 1e-4, 1.0 - 1e-4)
    return 0.1 * ops.sum(0.1 * ops.log(0.1 / mean) + 0.9 * ops.log(0.9 / (1.0 - mean)))


@scenario(once=True, told="whole")
def units_that_are_rarely_active(folder: Path) -> Outcome:
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(8, "sigmoid", activity_regularizer=rarely_active),
            layers.Dense(FEATURES),
        ]
    )
    model.compile(_sgd(), loss="mse")
    x, _ = table()
    return _fitted(model, x, x)


class Renormalised(layers.Layer):
    """Batch renormalisation: the correction's limits widen with the steps."""

    def build(self, shape: Any) -> None:
        self.mean = self.add_weight(shape=shape[-1:], initializer="zeros", trainable=False)
        self.deviation = self.add_weight(shape=shape[-1:], initializer="ones", trainable=False)
        self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        if not training:
            return (x - self.mean) / self.deviation
        mean, deviation = ops.mean(x, 0), ops.std(x, 0) + 1e-3
        most = ops.minimum(1.0 + 0.2 * self.steps, 3.0)
        scale = ops.stop_gradient(ops.clip(deviation / self.deviation, 1.0 / most, most))
        shift = ops.stop_gradient(ops.clip((mean - self.mean) / self.deviation, 1.0 - most, most - 1.0))
        self.mean.assign(0.9 * self.mean + 0.1 * mean)
        self.deviation.assign(0.9 * self.deviation + 0.1 * deviation)
        self.steps.assign_add(1.0)
        return (x - mean) / deviation * scale + shift


@scenario(once=True, told="whole")
def batch_renormalisation(folder: Path) -> Outcome:
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), Renormalised(), layers.Dense(1)]
    )
    model.compile(_sgd(), loss="mse")
    return _fitted(model, *table())


class Smoothing(keras.callbacks.Callback):
    """Turns label smoothing on, and compiles the model again, when the first epoch has ended."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == 0:
            loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
            self.model.compile(self.model.optimizer, loss=loss)
            self.model.make_train_function(force=True)


@scenario(once=True)
def label_smoothing_from_the_second_epoch(folder: Path) -> Outcome:
    model = _dense(3)
    model.compile(_sgd(), loss=keras.losses.CategoricalCrossentropy(from_logits=True))
    x, y = classes(ROWS // 2)
    return _fitted(model, x, np.eye(3, dtype="float32")[y], 2, callbacks=[Smoothing()])


class Averaging(keras.callbacks.Callback):
    """Stochastic weight averaging by hand; the average replaces the weights in the end."""

    mean: list[np.ndarray]

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        own = self.model.get_weights()
        self.mean = (
            own if epoch == 0 else [a + (b - a) / (epoch + 1) for a, b in zip(self.mean, own, strict=True)]
        )

    def on_train_end(self, logs: Any = None) -> None:
        self.model.set_weights(self.mean)


@scenario(once=True)
def weights_averaged_over_epochs(folder: Path) -> Outcome:
    model = _dense()
    rate = keras.optimizers.schedules.CosineDecayRestarts(0.1, 7)
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss="mse")
    return _fitted(model, *table(ROWS // 4), 4, callbacks=[Averaging()])
