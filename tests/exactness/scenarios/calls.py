"""Calls besides a single fit: evaluate, predict, single batches, several models, compiling again."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tests.exactness.scenarios.losses import weights
from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table


@scenario(core=True)
def evaluate(folder: Path) -> Outcome:
    x, y = table(201)
    model = dense()
    model.compile(loss="mse", metrics=["mae"], weighted_metrics=["mae"])
    plain = model.evaluate(x, y, batch_size=BATCH, verbose=0)
    weighted = model.evaluate(x, y, sample_weight=weights(201), batch_size=50, verbose=0, return_dict=True)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(40)
    return Outcome(
        [model],
        {
            "plain": plain,
            "weighted": list(weighted.values()),
            "data": model.evaluate(data, steps=3, verbose=0),
        },
    )


@scenario(core=True)
def predict_in_order(folder: Path) -> Outcome:
    x, _ = table(201)
    model = dense()
    many = model.predict(x, batch_size=BATCH, verbose=0)
    one = model.predict(x[:1], verbose=0)
    data = tf.data.Dataset.from_tensor_slices(x).batch(30)
    return Outcome(
        [model],
        {
            "many": many,
            "one": one,
            "data": model.predict(data, verbose=0),
            "steps": model.predict(data, steps=2, verbose=0),
            "batch": model.predict_on_batch(x[:9]),
        },
    )


@scenario(core=True)
def train_on_batch(folder: Path) -> Outcome:
    x, y = table()
    model = dense()
    model.compile(keras.optimizers.Adam(0.005), loss="mse", metrics=["mae"])
    logs = []
    for begin in range(0, 20 * 63, 63):
        rows = slice(begin, begin + 63)
        logs.append(model.train_on_batch(x[rows], y[rows], sample_weight=weights(63)))
    tested = model.test_on_batch(x[:50], y[:50])
    return Outcome([model], {"logs": logs, "tested": tested})


@scenario(core=True)
def adversaries_by_single_batches(folder: Path) -> Outcome:
    """A GAN as in older tutorials: a critic, and a second model that trains the generator through it."""
    x, _ = table()
    maker = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(2)])
    critic = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    judge = keras.losses.BinaryCrossentropy(from_logits=True)
    critic.compile(keras.optimizers.Adam(0.01), loss=judge)
    critic.trainable = False
    both = keras.Sequential([maker, critic])
    both.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss=judge)
    said = np.repeat([[1.0], [0.0]], BATCH, axis=0).astype("float32")
    losses = []
    for noise in np.split(x, len(x) // BATCH)[:10]:
        critic.trainable = True
        seen = np.concatenate([noise[:, :2] ** 2, maker.predict_on_batch(noise)])
        losses.append(critic.train_on_batch(seen, said))
        critic.trainable = False
        losses.append(both.train_on_batch(noise, said[:BATCH]))
    losses.append(both.evaluate(x, np.ones_like(x[:, :1]), batch_size=BATCH, verbose=0))
    return Outcome([maker, critic], {"losses": losses})


@scenario()
def several_models(folder: Path) -> Outcome:
    x, y = table(BATCH * 7)
    first, second = dense(), dense()
    first.compile(keras.optimizers.SGD(0.05), loss="mse")
    second.compile(keras.optimizers.Adam(0.005), loss="mae")
    for _ in range(2):
        first.fit(x, y, batch_size=BATCH, verbose=0)
        second.fit(x, first.predict(x, verbose=0), batch_size=BATCH, verbose=0)
    return Outcome([first, second])


@scenario()
def several_fits(folder: Path) -> Outcome:
    x, y = table(BATCH * 4)
    model = dense()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss="mse")
    losses = [model.fit(x, y, batch_size=size, verbose=0).history["loss"][0] for size in (64, 32, 48)]
    return Outcome([model], {"losses": losses})


@scenario()
def compiling_again(folder: Path) -> Outcome:
    """Fine tuning: freeze, train, unfreeze, compile again with another loss and optimizer."""
    x, y = table(BATCH * 8)
    model = dense()
    model.layers[0].trainable = False
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    model.layers[0].trainable = True
    model.compile(keras.optimizers.Adam(0.002), loss="mae", metrics=["mse"])
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(core=True)
def steps_per_execution(folder: Path) -> Outcome:
    x, y = table(BATCH * 10 + 4)
    model = dense()
    model.compile(keras.optimizers.SGD(0.05), loss="mse", steps_per_execution=4)
    batches: list[int] = []
    heard = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: batches.append(batch))
    history = model.fit(x, y, batch_size=BATCH, epochs=2, callbacks=[heard], verbose=0)
    model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
    predicted = model.predict(x, batch_size=BATCH, verbose=0)
    values = {"evaluated": model.evaluate(x, y, batch_size=BATCH, verbose=0), "predicted": predicted}
    return Outcome([model], {**history.history, **values, "batches": batches})


@scenario()
def run_eagerly(folder: Path) -> Outcome:
    x, y = table(BATCH * 5 + 1)
    model = dense()
    model.compile(keras.optimizers.SGD(0.05, clipnorm=0.1), loss="mse", metrics=["mae"], run_eagerly=True)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    values = {"predicted": model.predict(x[:65], verbose=0)}
    return Outcome([model], {**history.history, **values})


@scenario(told="jit_compile is ignored")
def jit_compile(folder: Path) -> Outcome:
    x, y = table()
    model = dense()
    model.compile(keras.optimizers.SGD(0.05), loss="mse", jit_compile=True)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def saving_and_loading(folder: Path) -> Outcome:
    x, y = table(BATCH * 8)
    model = dense()
    model.compile(keras.optimizers.Adam(0.005), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    loaded.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model, loaded])


@scenario()
def unseeded_start(folder: Path) -> Outcome:
    """Members that would start from different weights start from the chief's."""
    x, y = table(BATCH * 8)
    model = dense()
    if folder.parent.name != "rank0":
        model.set_weights([np.ones_like(weight) for weight in model.get_weights()])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])
