"""Models and losses combined at random from a seed: row-wise terms, and terms of the batch as a whole that
exist from the start, begin later, appear only in the gradient, are small beside the rest or rare in the data;
with metrics of their own."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.audited import ClippedBack, Turned
from tests.exactness.scenarios.registry import BATCH, FEATURES, table

STEPS, EPOCHS = int(os.environ.get("TANDEM_FUZZ_STEPS", "12")), 2
_MISSING = 2.0
"""Outside of all targets, but close enough that a squared distance keeps its last bits."""
_RARE, _RARE_ROWS = 1.5, 3
"""The target of rows with a term of their own, and how many such rows a batch has that has any."""


class RandomModel(NamedTuple):
    """The model of a seed."""

    words: str
    of_rows: bool
    """Nothing in the model depends on the batch as a whole: it is shared, and nothing is reported."""
    model: Any
    rate: float = 1.0
    """The part of the steps in which the model's only dependence on the batch as a whole shows."""

    def fit(self, x: np.ndarray, y: np.ndarray, callbacks: list[Any], *, eagerly: bool) -> None:
        """`eagerly`: rounded differently."""
        self.model.run_eagerly |= eagerly
        self.model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=callbacks)


class Near(keras.metrics.Metric):
    """The part of the rows whose prediction is near: a sum over rows."""

    def __init__(self) -> None:
        super().__init__(name="near")
        self.near = self.add_weight(shape=(), initializer="zeros")
        self.rows = self.add_weight(shape=(), initializer="zeros")

    def update_state(self, true: Any, seen: Any, sample_weight: Any = None) -> None:
        self.near.assign_add(ops.sum(ops.sigmoid(20.0 * (0.5 - ops.abs(true - seen)))))
        self.rows.assign_add(ops.cast(ops.shape(true)[0], "float32"))

    def result(self) -> Any:
        return ops.divide_no_nan(self.near, self.rows)


class Farthest(keras.metrics.Metric):
    """The largest distance so far: no sum over rows."""

    def __init__(self) -> None:
        super().__init__(name="farthest")
        self.most = self.add_weight(shape=(), initializer="zeros")

    def update_state(self, true: Any, seen: Any, sample_weight: Any = None) -> None:
        self.most.assign(ops.maximum(self.most, ops.max(ops.abs(true - seen))))

    def result(self) -> Any:
        return self.most + 0.0


def _of_rows(name: str, true: Any, seen: Any) -> Any:
    far = true - seen
    match name:
        case "squares":
            return ops.mean(ops.square(far))
        case "absolute":
            return ops.mean(ops.sqrt(ops.square(far) + 0.01))
        case _:
            return ops.mean(ops.logaddexp(far, -far), axis=-1)  # one per row


def of_batch(name: str, true: Any, seen: Any) -> Any:
    match name:
        case "spread":
            return tf.math.reduce_std(seen)
        case "product":
            return ops.mean(seen) * ops.mean(ops.square(seen - true))
        case "largest":
            return ops.logsumexp(3.0 * ops.square(seen - true)) / 3.0
        case _:
            far = ops.mean(ops.square(seen - true))
            return far / ops.stop_gradient(far + 0.1)


def begun(optimizer: Any, start: int, begins: str, term: Callable[[], Any]) -> Any:
    """The term; if it begins later, zero before the step `start`."""
    return tf.cond(optimizer.iterations >= start, term, lambda: 0.0) if begins == "later" else term()


def trained(seed: int, *, eager: bool) -> RandomModel:
    """Trains for `STEPS` steps of 64 rows, twice; alike in one process and in members."""
    keras.utils.set_random_seed(seed)
    drawn = random.Random(seed)
    rows = drawn.choice(["squares", "absolute", "smooth"])
    term = drawn.choice([None, None, "spread", "product", "largest", "stopped"])
    begins = drawn.choice(["at once", "later", "by a callback"]) if term else ""
    size = drawn.choice([1.0, 0.1, 0.01]) if term else 0.0
    from_batch = drawn.choice([None, None, None, 0, 2, 5])
    between = drawn.choice([None, None, "dropout", "noise", "clipped", "normed"])
    optimizer = drawn.choice(["sgd", "momentum", "adam"])
    metrics = drawn.choice([[], ["mae"], [keras.metrics.RootMeanSquaredError()]])
    start = drawn.randint(2, STEPS - 3)
    weight = tf.Variable(0.0 if begins == "by a callback" else size, trainable=False)

    inner = {
        "dropout": layers.Dropout(0.3, seed=seed),
        "noise": layers.GaussianNoise(0.1, seed=seed),
        "clipped": ClippedBack(),
        "normed": layers.LayerNormalization(),
    }
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(drawn.choice([4, 16]), drawn.choice(["tanh", "gelu", "sigmoid"])),
            *([inner[between]] if between else []),
            layers.Dense(1),
        ]
    )
    rare = drawn.choice([None, None, None, 1, 3])
    own = drawn.choice([None, None, Near, Farthest])
    metrics += [own()] if own else []
    chosen: Any = {
        "sgd": lambda: keras.optimizers.SGD(0.05),
        "momentum": lambda: keras.optimizers.SGD(0.02, momentum=0.9),
        "adam": lambda: keras.optimizers.Adam(0.01, epsilon=1e-4),
    }[optimizer]()

    def loss(true: Any, seen: Any) -> Any:
        if from_batch is not None:
            there = ops.cast(true != _MISSING, "float32")
            found = ops.sum(there * ops.square(true - seen)) / ops.maximum(ops.sum(there), 1.0)
        else:
            found = _of_rows(rows, true, seen)
        if rare:
            there = ops.cast(true == _RARE, "float32")
            found += 0.3 * ops.sum(there * ops.square(seen)) / ops.maximum(ops.sum(there), 1.0)
        if term is None:
            return found
        return found + weight * begun(chosen, start, begins, lambda: of_batch(term, true, seen))

    model.compile(chosen, loss=loss, metrics=metrics)
    x, y = table(STEPS * BATCH, seed)
    if from_batch is not None:
        missing = np.random.RandomState(seed).uniform(size=y.shape) < 0.3
        missing[: from_batch * BATCH] = False
        y = np.where(missing, _MISSING, y).astype("float32")
    if rare:
        for batch in drawn.sample(range(1, STEPS), rare):
            y[[batch * BATCH + row for row in drawn.sample(range(BATCH), _RARE_ROWS)]] = _RARE
    words = f"{rows}, {term} {begins} ×{size} from {start}, missing {from_batch}, {between}, {optimizer}"
    words += f", rare {rare}, {own and own.__name__}"
    else_of_rows = term is None and from_batch is None and between != "clipped"
    of_rows = else_of_rows and rare is None and own is not Farthest
    made = RandomModel(words, of_rows, model, rare / STEPS if rare and else_of_rows else 1.0)
    made.fit(x, y, [Turned(weight)] if begins == "by a callback" else [], eagerly=eager)
    return made
