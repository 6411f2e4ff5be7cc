"""Models and losses combined at random from a seed: row-wise terms, and terms of the batch as a whole that
exist from the start, begin later, appear only in the gradient or are small beside the rest."""

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


class RandomModel(NamedTuple):
    """The model of a seed."""

    words: str
    of_rows: bool
    """Nothing in the model depends on the batch as a whole: it is shared, and nothing is reported."""
    model: Any

    def fit(self, x: np.ndarray, y: np.ndarray, callbacks: list[Any], *, eagerly: bool) -> None:
        """`eagerly`: rounded differently."""
        self.model.run_eagerly |= eagerly
        self.model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=callbacks)


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
        if term is None:
            return found
        return found + weight * begun(chosen, start, begins, lambda: of_batch(term, true, seen))

    model.compile(chosen, loss=loss, metrics=metrics)
    x, y = table(STEPS * BATCH, seed)
    if from_batch is not None:
        missing = np.random.RandomState(seed).uniform(size=y.shape) < 0.3
        missing[: from_batch * BATCH] = False
        y = np.where(missing, _MISSING, y).astype("float32")
    words = f"{rows}, {term} {begins} ×{size} from {start}, missing {from_batch}, {between}, {optimizer}"
    of_rows = term is None and from_batch is None and between != "clipped"
    made = RandomModel(words, of_rows, model)
    made.fit(x, y, [Turned(weight)] if begins == "by a callback" else [], eagerly=eager)
    return made
