"""Faults that show in some steps only: in the first seconds every step is audited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from core.trainer.exact.steps.course import AuditTime, Course
from core.trainer.exact.steps.pace import PortionPace
from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table

_MISSING = 99.0


class Sometimes(keras.Model):
    """Adds a term that depends on the batch as a whole, in the steps whose numbers `due` selects."""

    def __init__(self, due: Any) -> None:
        super().__init__()
        self.inner = keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(1)])
        self.due = due

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            seen = self(x, training=True)
            loss = tf.reduce_mean(tf.square(seen - y))
            loss += tf.cond(
                self.due(self.optimizer.iterations),
                lambda: tf.math.reduce_std(seen),
                lambda: tf.constant(0.0),
            )
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def _fitted(model: Any, steps: int = 20, epochs: int = 1, **given: Any) -> Outcome:
    x, y = table(steps * BATCH)
    model.compile(keras.optimizers.SGD(0.05), **given)
    model.fit(x, y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0)
    return Outcome([model])


@contextmanager
def as_slow_steps(*, affords: bool = False) -> Iterator[None]:
    """Of the first 64 steps only those are audited that are audited whatever the cost."""
    with mock.patch.object(AuditTime, "affords_at_first", lambda time, cost_s: affords):
        yield


def as_quick_steps() -> AbstractContextManager[None]:
    """However slow this machine is, all steps are audited."""
    return as_slow_steps(affords=True)


@scenario(once=True, core=True, told="audit")
def term_at_every_seventh_step(folder: Path) -> Outcome:
    with as_quick_steps():
        return _fitted(Sometimes(lambda step: step % 7 == 6))


@scenario(once=True, told="audit")
def term_at_every_tenth_step(folder: Path) -> Outcome:
    with as_quick_steps():
        return _fitted(Sometimes(lambda step: step % 10 == 9), 40)


@scenario(once=True, told="audit")
def term_in_the_last_third(folder: Path) -> Outcome:
    with as_quick_steps():
        return _fitted(Sometimes(lambda step: step >= 80), 120)


@scenario(once=True, core=True, told="audit")
def three_batches_with_missing_targets(folder: Path) -> Outcome:
    x, y = table()
    missing = np.random.RandomState(5).uniform(size=y.shape) < 0.3
    for batch in range(20):
        if batch not in (5, 10, 18):
            missing[batch * BATCH : (batch + 1) * BATCH] = False
    y = np.where(missing, _MISSING, y).astype("float32")

    def loss(true: Any, seen: Any) -> Any:
        there = ops.cast(true != _MISSING, "float32")
        return ops.sum(there * ops.square(true - seen)) / ops.sum(there)

    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss=loss)
    with as_quick_steps():
        model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model])


@scenario(once=True, told="audit")
def larger_of_two_terms(folder: Path) -> Outcome:
    """Which one it is changes from step to step."""

    def loss(true: Any, seen: Any) -> Any:
        far = true - seen
        return ops.maximum(ops.mean(ops.square(far)), 0.9 * ops.mean(ops.abs(far)) - 0.16)

    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(1)])
    with as_quick_steps():
        return _fitted(model, loss=loss)


@scenario(once=True, core=True, told="The result is exact, but")
def slow_steps_that_are_done_again(folder: Path) -> Outcome:
    """From the 13th on: an audit of the 16th finds it, and all steps since the second are repeated."""
    with as_slow_steps():
        return _fitted(Sometimes(lambda step: step >= 12))


@scenario(once=True, exact=False, told="Some of the 10 steps before it were not audited", differs=True)
def slow_steps_that_may_have_been_wrong_before(folder: Path) -> Outcome:
    """In the sixth, and from the 16th on: results of the first epoch cannot be taken back."""
    with as_slow_steps():
        return _fitted(Sometimes(lambda step: (step == 5) | (step >= 15)), 10, epochs=2)


@scenario(once=True, told="Some of the 49 steps before it were not audited", differs=True)
def one_step_of_fifty(folder: Path) -> Outcome:
    """Found by the 49th audit. A callback saw each step, and what the eleventh did is not known."""
    x, y = table(60 * BATCH)
    model = Sometimes(lambda step: step == 49)
    model.compile(keras.optimizers.SGD(0.05))
    seen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
    but_one = mock.patch.object(Course, "ahead", lambda course, *_, **__: 0 if course.steps != 10 else None)
    with but_one:
        model.fit(x, y, batch_size=BATCH, shuffle=False, callbacks=[seen], verbose=0)
    return Outcome([model])


class Weighted(keras.Model):
    """Rows count the more, the larger the mean loss of the epoch's batches so far."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(1)])
        self.so_far = keras.metrics.Mean(name="loss")

    def call(self, x: Any) -> Any:
        return self.inner(x)

    @property
    def metrics(self) -> list[Any]:
        return [self.so_far]

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            weighted = loss * (0.5 + self.so_far.result())
        gradients = tape.gradient(weighted, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.so_far.update_state(loss)
        return {"loss": self.so_far.result()}


@scenario(once=True, core=True, told="the gradients depend on the metric 'loss'")
def loss_weighted_by_a_metric(folder: Path) -> Outcome:
    """Members add up metrics after several steps: an audited step is the only one of its call."""
    with as_slow_steps():
        return _fitted(Weighted())


def _validated() -> Outcome:
    """A loss that skips missing targets: the training has none, nor have the first two of six batches of the
    validation."""

    def loss(true: Any, seen: Any) -> Any:
        there = ops.cast(true < _MISSING, "float32")
        far = ops.square(ops.where(true < _MISSING, true, 0.0) - seen)
        return ops.sum(there * far) / ops.maximum(ops.sum(there), 1.0)

    x, y = table(5 * BATCH)
    other, targets = table(6 * BATCH, seed=9)
    missing = np.random.RandomState(3).uniform(size=targets.shape) < 0.4
    targets[missing & (np.arange(len(targets)) >= 2 * BATCH)[:, None]] = _MISSING
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss=loss)
    history = model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=3,
        shuffle=False,
        verbose=0,
        validation_data=(other, targets),
        validation_batch_size=BATCH,
    ).history
    evaluated = model.evaluate(other, targets, batch_size=BATCH, verbose=0)
    return Outcome([model], {"later": [*history["val_loss"][1:], evaluated], "first": history["val_loss"][0]})


@scenario(once=True, core=True, told="An audit of a validation found that 'loss'")
def validation_with_missing_targets(folder: Path) -> Outcome:
    with as_quick_steps():
        return _validated()


@scenario(once=True, told="Earlier values may differ from those of one laptop", differs=True)
def validation_of_slow_steps_with_missing_targets(folder: Path) -> Outcome:
    """The first value cannot be taken back, but those after it are right."""
    with as_slow_steps():
        outcome = _validated()
    del outcome.values["first"]
    return outcome


@scenario(once=True)
def data_that_gets_shorter(folder: Path) -> Outcome:
    """From the second epoch on a curriculum leaves rows out; Keras expects as many batches as before."""

    class Fewer(keras.utils.PyDataset):
        count = 20

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, index: int) -> Any:
            rows = slice(index * BATCH, (index + 1) * BATCH)
            return x[rows], y[rows]

        def on_epoch_end(self) -> None:
            self.count = 10

    x, y = table(20 * BATCH)
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(8, "tanh"), layers.Dropout(0.2, seed=3), layers.Dense(1)]
    )
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1), loss="mse")
    several = mock.patch.object(PortionPace, "steps", lambda pace, once, left=8: int(min(8, left)))
    with as_slow_steps(), several:  # the data ends in the middle of steps in one call
        fitted = model.fit(Fewer(), epochs=4, shuffle=False, verbose=0)
    return Outcome([model], {"loss": fitted.history["loss"]})
