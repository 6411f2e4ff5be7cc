"""A script that does something else on one member than on the others: ``goes_apart.py HOW``."""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

how = sys.argv[1]
apart = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker"
print("goes apart", how, apart, flush=True)


def differs(name: str) -> bool:
    return apart and how == name


def data(rows: int, features: int = 4) -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(rows, features)).astype("float32")
    return x, x[:, :1]


class Fails(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        raise ValueError("the data ran out")


class StepFails(keras.Model):
    """Its step ends by an error within the graph, after it has begun to hand gradients over."""

    def train_step(self, batch: Any) -> Any:
        logs = super().train_step(batch)
        with tf.control_dependencies([tf.debugging.Assert(not differs("caught in a step"), ["of its own"])]):
            return {name: tf.identity(value) for name, value in logs.items()}


class BreaksBackward(keras.layers.Layer):
    """Fails once the gradients of the layers behind it were handed over."""

    def call(self, x: Any) -> Any:
        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def same(x: Any) -> Any:
            def back(upstream: Any) -> Any:
                own = tf.debugging.Assert(not differs("caught while gradients are handed over"), ["own"])
                with tf.control_dependencies([own]):
                    return tf.identity(upstream)

            return tf.identity(x), back

        return same(x)


def model(width: int = 8, kind: Any = keras.Model) -> Any:
    source = keras.Input((4,))
    made = kind(source, keras.layers.Dense(1)(keras.layers.Dense(width, activation="relu")(source)))
    made.compile("sgd", "mse")
    return made


def fit(made: Any, rows: int = 64, **options: Any) -> None:
    made.fit(*data(rows), **{"batch_size": 16, "epochs": 2, "verbose": 0, **options})


def batches(count: int, rows: int) -> Any:
    """Batches from a generator, whose number is unknown beforehand."""

    def make() -> Iterator[tuple[Any, Any]]:
        for _ in range(count):
            yield data(rows)

    spec = tuple(tf.TensorSpec((None, width), tf.float32) for width in (4, 1))
    return tf.data.Dataset.from_generator(make, output_signature=spec)


def images(size: int) -> None:
    made = keras.Sequential(
        [keras.Input((None, None, 1)), keras.layers.Conv2D(2, 3), keras.layers.GlobalAveragePooling2D()]
    )
    made.compile("sgd", "mse")
    made.fit(np.ones((32, size, size, 1), "float32"), np.ones((32, 2), "float32"), batch_size=16, verbose=0)


match how:
    case "model":
        fit(model(9 if apart else 8))
    case "batches":
        fit(model(), rows=80 if apart else 64)
    case "batches of a generator":
        model().fit(batches(3 if apart else 5, 16), epochs=2, verbose=0)
    case "rows of a generator":
        model().fit(batches(4, 12 if apart else 16), epochs=2, verbose=0)
    case "shape":
        images(10 if apart else 8)
    case "skipped":
        made = model()
        if not apart:
            fit(made, epochs=50)
        made.evaluate(*data(64), verbose=0)
    case "skipped one of two":
        if not apart:
            fit(model())
        fit(model(16))
    case "caught in a callback":
        made = model()
        try:
            fit(made, epochs=50, callbacks=[Fails()] if apart else [])
        except ValueError as error:
            print("caught", error, flush=True)
        fit(made)
    case "caught in a step":
        made = model(kind=StepFails)
        try:
            fit(made)
        except tf.errors.InvalidArgumentError:
            print("caught", flush=True)
        fit(model(16))
    case "caught while gradients are handed over":
        # The large layer's gradient is a pack of its own, which goes first.
        wide = [keras.layers.Dense(1024), BreaksBackward(), keras.layers.Dense(1024), keras.layers.Dense(1)]
        made = keras.Sequential([keras.Input((4,)), *wide])
        made.compile("sgd", "mse")
        try:
            fit(made)
        except tf.errors.InvalidArgumentError:
            print("caught", flush=True)
        fit(model(16))
    case "caught by all":
        made = model()
        try:
            fit(made, callbacks=[Fails()])
        except ValueError as error:
            print("caught", error, flush=True)
        fit(made)
    case "everything is caught":
        for round in range(3):
            try:
                fit(model(8 + round + (apart and round == 1)))
            except BaseException as error:
                print("caught", type(error), flush=True)
    case "ends early":
        fit(model())
        if not apart:
            fit(model())
    case "ends early beside one in its own code":
        fit(model())
        if not apart:
            time.sleep(14.0)
            fit(model())
    case "predict":
        model().predict(data(24 if apart else 32)[0], batch_size=16, verbose=0)
    case _:
        raise ValueError(how)
print("the end", flush=True)
