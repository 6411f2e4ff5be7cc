"""Run by test_apart: scripts that differ between members, one after the other, in one cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.exactness.member import Quiet, begin, gathers, join, leave


def main() -> None:
    begin()
    order = json.loads(sys.argv[1])
    out, rank = Path(order["out"]), order["rank"]
    observer = Quiet()
    installation = join(order, observer)
    import keras
    import numpy as np
    import tensorflow as tf

    from core.vocabulary.errors import TandemError
    from tests.exactness.scenarios.optimizers import dense
    from tests.exactness.scenarios.registry import BATCH, FEATURES, table

    x, y = table(BATCH * 6)

    def fit(*data: Any, eager: bool = False, **options: Any) -> Any:
        model = dense()
        model.compile(keras.optimizers.SGD(0.05), loss="mse", run_eagerly=eager)
        model.fit(*data, batch_size=None if len(data) == 1 else BATCH, verbose=0, **options)
        return model

    def numbers() -> None:
        random = np.random.default_rng()
        fit(random.normal(size=x.shape).astype("float32"), random.normal(size=y.shape).astype("float32"))

    def order_of_rows() -> None:
        shuffled = np.random.default_rng(rank).permutation(len(x))
        fit(x[shuffled], y[shuffled], shuffle=False)

    def texts() -> None:
        names = tf.constant([[f"{number % (5 + rank)}"] for number in range(len(x))])
        data = tf.data.Dataset.from_tensor_slices((x, names, y))
        fit(data.map(lambda a, name, b: (a, b + tf.strings.to_number(name))).batch(BATCH))

    def shapes() -> None:
        fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH + (rank == 1)))

    def augmented() -> None:
        noise = np.random.default_rng(rank).normal(size=x.shape).astype("float32")
        fit(x + 0.1 * noise, y)

    def augmented_loss_of_the_batch() -> None:
        noise = np.random.default_rng(rank).normal(size=x.shape).astype("float32")
        model = dense()
        loss = keras.losses.MeanSquaredError()
        model.compile(keras.optimizers.SGD(0.05), loss=lambda true, seen: tf.sqrt(loss(true, seen)))
        model.fit(x + 0.1 * noise, y, batch_size=BATCH, verbose=0)
        assert gathers(model), "no one looked at the loss"

    def augmented_batch_as_a_whole() -> None:
        noise = np.random.default_rng(rank).normal(size=x.shape).astype("float32")
        centred = keras.layers.Lambda(lambda seen: seen - tf.reduce_mean(seen, axis=0))
        model = keras.Sequential([keras.Input((FEATURES,)), centred, keras.layers.Dense(1)])
        model.compile("sgd", loss="mse")
        model.fit(x + 0.1 * noise, y, batch_size=BATCH, verbose=0)

    def rounded() -> None:
        fit(x * np.float32(1 + 1e-6 * rank), y)

    def rate_from_a_clock() -> None:
        class Clock(keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                self.model.optimizer.learning_rate = 0.01 * (1 + 0.2 * rank)

        fit(x, y, callbacks=[Clock()])

    class Apart(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            kernel = self.model.layers[0].kernel
            kernel.assign(kernel * (1 + 0.1 * rank))

    def weights() -> None:
        fit(x, y, callbacks=[Apart()])

    def kept_past_keras() -> None:
        class Counted(keras.layers.Layer):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.kept = {"told": tf.Variable(0.0, trainable=False, name="kept")}

            def call(self, seen: Any) -> Any:
                return seen

        class Counts(keras.callbacks.Callback):  # type: ignore[misc]
            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                self.model.layers[0].kept["told"].assign_add(1.0 + rank)

        model = keras.Sequential([keras.Input((FEATURES,)), Counted(), keras.layers.Dense(1)])
        model.compile("sgd", loss="mse")
        model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[Counts()])

    def eager_weights() -> None:
        fit(x, y, eager=True, callbacks=[Apart()])

    def batch_by_batch() -> None:
        model = dense()
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        for step in range(3):
            model.train_on_batch(x[step * BATCH : (step + 1) * BATCH], y[step * BATCH : (step + 1) * BATCH])
        kernel = model.layers[0].kernel
        kernel.assign(kernel * (1 + 0.1 * rank))
        installation.settle()

    def batches_of_a_loop() -> None:
        model = dense()
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        random = np.random.default_rng()
        model.train_on_batch(x[:BATCH], random.normal(size=(BATCH, 1)).astype("float32"))

    def validation() -> None:
        fit(x, y, validation_data=(x[:64], y[:64] + rank))

    def as_it_should_be() -> None:
        model = fit(x, y)
        assert model.predict(x[:3], verbose=0).shape == (3, 1) and x.shape[1] == FEATURES
        installation.settle()

    record: dict[str, Any] = {}
    scripts: list[Callable[[], None]] = [
        numbers,
        order_of_rows,
        texts,
        augmented,
        augmented_loss_of_the_batch,
        augmented_batch_as_a_whole,
        rounded,
        rate_from_a_clock,
        weights,
        kept_past_keras,
        eager_weights,
        batch_by_batch,
        batches_of_a_loop,
        validation,
        as_it_should_be,
        shapes,  # last, since no member connects after it
    ]
    for script in scripts:
        keras.utils.set_random_seed(5)
        observer.words.clear()
        installation.begin_training()
        found: dict[str, Any] = {"code": "", "what": "", "fix": ""}
        try:
            script()
        except TandemError as error:
            found = {"code": error.code, "what": error.what, "fix": error.fix}
        record[script.__name__] = {**found, "said": list(observer.words)}
    leave(out, record)


if __name__ == "__main__":
    main()
