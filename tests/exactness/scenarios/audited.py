"""Differences that the check of the first batch cannot see: an audit finds them during training."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from core.trainer.exact.steps.course import Course
from tests.exactness.scenarios.rarely import as_slow_steps
from tests.exactness.scenarios.registry import BATCH, FEATURES, ROWS, Outcome, scenario, table

_RARE = 99.0


def _dense(loss: Any, rate: float = 0.05, outputs: int = 1) -> Any:
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(outputs)])
    model.compile(keras.optimizers.SGD(rate), loss=loss)
    return model


def _rare(seed: int, from_row: int) -> Any:
    """Targets with some missing values, none of them in the first batches."""
    _, y = table()
    missing = np.random.RandomState(seed).uniform(size=y.shape) < 0.3
    missing[:from_row] = False
    return np.where(missing, _RARE, y).astype("float32")


def _without_rare(true: Any, seen: Any) -> Any:
    """A mean over the entries that are not missing."""
    there = ops.cast(true != _RARE, "float32")
    return ops.sum(there * ops.square(true - seen)) / ops.sum(there)


@scenario(once=True, core=True, told="audit")
def missing_from_the_sixth_batch(folder: Path) -> Outcome:
    x, _ = table()
    model = _dense(_without_rare)
    model.fit(x, _rare(3, 5 * BATCH), batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model], {})


@scenario(once=True, told="audit")
def missing_from_the_second_batch(folder: Path) -> Outcome:
    x, _ = table()
    model = _dense(_without_rare)
    model.fit(x, _rare(4, BATCH), batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model], {})


class Later(keras.Model):
    """Adds a term that depends on the batch as a whole, from a given step on."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(1)])

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            seen = self(x, training=True)
            loss = tf.reduce_mean(tf.square(seen - y))
            more = tf.cond(
                self.optimizer.iterations >= 12,
                lambda: tf.math.reduce_std(seen),
                lambda: tf.constant(0.0),
            )
            loss += more
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


@scenario(once=True, told="audit")
def term_that_begins_later(folder: Path) -> Outcome:
    x, y = table()
    model = Later()
    model.compile(keras.optimizers.SGD(0.05))
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model], {})


@scenario(once=True, core=True, exact=False, told="not audited", differs=True)
def term_that_begins_before_a_callback(folder: Path) -> Outcome:
    """Values that a callback saw after single batches cannot be taken back."""
    heard: list[int] = []
    hears = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: heard.append(batch))
    x, y = table()
    model = Later()
    model.compile(keras.optimizers.SGD(0.05))
    with as_slow_steps():
        model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[hears])
    return Outcome([model], {"heard": heard})


class Turned(keras.callbacks.Callback):
    """Increases a weight of the loss when the second epoch begins."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            self.weight.assign(0.5)


@scenario(once=True, core=True, told="audit")
def weight_turned_up_by_a_callback(folder: Path) -> Outcome:
    weight = tf.Variable(0.0, trainable=False)

    def loss(true: Any, seen: Any) -> Any:
        return ops.mean(ops.square(true - seen)) + weight * tf.math.reduce_std(seen)

    x, y = table(ROWS // 2)
    model = _dense(loss)
    model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0, callbacks=[Turned(weight)])
    return Outcome([model], {})


@scenario(once=True, told="audit")
def hard_examples(folder: Path) -> Outcome:
    """Once the loss is low, only rows with a large error count."""

    def loss(true: Any, seen: Any) -> Any:
        far = ops.square(true - seen)
        mean = ops.mean(far)
        hard = ops.cast(far > 0.1, "float32")
        among = ops.sum(hard * far) / ops.maximum(ops.sum(hard), 1.0)
        return ops.where(mean < 0.2, among, mean)

    x, _ = table()
    model = _dense(loss, 0.1)
    model.fit(x, x[:, :1] + 0.3 * x[:, 1:2], batch_size=BATCH, shuffle=False, epochs=2, verbose=0)
    return Outcome([model], {})


@scenario(once=True, told="audit")
def triplets_that_violate_the_margin(folder: Path) -> Outcome:
    def loss(true: Any, seen: Any) -> Any:
        anchor, near, far = ops.split(seen, 3, axis=-1)
        apart = ops.sum(ops.square(anchor - near) - ops.square(anchor - far), -1) + 0.2
        violated = ops.maximum(apart, 0.0)
        count = ops.sum(ops.cast(violated > 1e-16, "float32"))
        return ops.sum(violated) / (count + 1e-16)

    x, y = table()
    model = _dense(loss, 0.05, 6)
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model], {})


@scenario(once=True, gathers=True)
def flag_between_two_fits(folder: Path) -> Outcome:
    flag = {"on": False}

    def loss(true: Any, seen: Any) -> Any:
        near = ops.mean(ops.square(true - seen))
        return near + tf.math.reduce_std(seen) if flag["on"] else near

    x, y = table(ROWS // 2)
    model = _dense(loss)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    flag["on"] = True
    model.compile(keras.optimizers.SGD(0.05), loss=loss)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _clipped_back(x: Any) -> Any:
    return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.01)


class ClippedBack(layers.Layer):
    def call(self, x: Any) -> Any:
        return _clipped_back(x)


@scenario(once=True, core=True, told="audit")
def gradient_clipped_on_its_way(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), ClippedBack(), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})


@scenario(once=True, told="It is measured: True.")
def cost_of_what_the_first_audit_finds(folder: Path) -> Outcome:
    """How much longer a whole step takes is known, although the time of the first one includes tracing."""
    words = property(lambda course: f" It is measured: {course.slower > 0}.")
    with mock.patch.object(Course, "cost_words", words):
        return gradient_clipped_on_its_way(folder)


@scenario(once=True, told="audit")
def loss_divided_by_itself(folder: Path) -> Outcome:
    def loss(true: Any, seen: Any) -> Any:
        far = ops.mean(ops.square(true - seen))
        return far / ops.stop_gradient(far)

    x, y = table()
    model = _dense(loss)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})


class Experts(layers.Layer):
    """A small mixture of experts, with a loss that balances them over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = layers.Dense(3, "softmax")
        self.experts = [layers.Dense(4, "tanh") for _ in range(3)]

    def call(self, x: Any) -> Any:
        gate = self.gate(x)
        chosen = tf.one_hot(tf.argmax(gate, -1), 3)
        balance = tf.reduce_sum(tf.reduce_mean(chosen, 0) * tf.reduce_mean(gate, 0))
        self.add_loss(1e-3 * balance)
        return tf.add_n([gate[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts)])


@scenario(once=True, told="whole")
def experts_that_are_balanced(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential([keras.Input((FEATURES,)), Experts(), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {})
