"""Fits twice, evaluates and predicts. Each ``--dies TASK PLACE`` kills that member there: in the first fit's
``step``s, in an ``audit`` of one, in ``validation``, a ``callback``, ``between`` the fits, in ``evaluate``,
``predict`` or while ``closing``. With ``--whole`` a layer mixes rows, so that each member computes whole
batches.

Writes the results to ``--to``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

AUDITED = 15
"""The batch of step 16, which is audited: its data is read first, and a whole step takes its time."""
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--dies", nargs=2, action="append", default=[], metavar=("TASK", "PLACE"))
parser.add_argument("--to", required=True)
parser.add_argument("--whole", action="store_true")
options = parser.parse_args()
task = json.loads(os.environ.get("TF_CONFIG") or '{"task": {"type": "chief", "index": 0}}')["task"]
own = f"{task['type']}:{task['index']}"


def place(name: str) -> None:
    if [own, name] in options.dies:
        os.kill(os.getpid(), signal.SIGKILL)


def killing(batches: Any, **places: int) -> Any:
    """The data; reading the batch of a place kills a member that dies there."""

    def look(number: Any) -> Any:
        for name, at in places.items():
            if number == at:
                place(name)
        return number

    def passed(number: Any, batch: Any) -> Any:
        with tf.control_dependencies([tf.numpy_function(look, [number], tf.int64)]):
            return tf.nest.map_structure(tf.identity, batch)

    return batches.enumerate().map(passed)


class Places(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            place("callback")


class Board(keras.callbacks.TensorBoard):
    """Run by the chief alone, which each member may become. Also lists the epochs that it has written."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        with Path(options.to, "boards").open("a", encoding="utf-8") as file:
            file.write(f"{epoch}\n")


keras.utils.set_random_seed(3)
random = np.random.default_rng(0)
rows = random.standard_normal((2400, 12)).astype("float32")
labels = (rows @ random.standard_normal((12, 4))).argmax(1)
data = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(24)
model = keras.Sequential(
    [
        keras.layers.Input((12,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dropout(0.3),
        *([keras.layers.UnitNormalization(axis=0)] if options.whole else []),
        keras.layers.Dense(4),
    ]
)


def ends(main: int) -> None:
    """Dies as soon as this member has met the others for the last time, or waits for them there."""
    while all(frame.f_code.co_name != "barrier" for frame in stack(main)):
        time.sleep(0.001)
    place("closing")


def stack(thread: int) -> list[Any]:
    frame: Any = sys._current_frames().get(thread)
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
first = model.fit(
    killing(data.repeat(), audit=AUDITED, step=170),
    steps_per_epoch=100,
    epochs=3,
    validation_data=killing(data, validation=40),
    verbose=0,
    callbacks=[Places(), Board(f"{options.to}/board-{own.replace(':', '-')}")],
)
place("between")
second = model.fit(rows, labels, batch_size=24, epochs=1, shuffle=True, verbose=0)
evaluated = model.evaluate(killing(data, evaluate=30), verbose=0)
predicted = model.predict(killing(data.map(lambda x, y: x), predict=30), verbose=0)
np.savez(
    f"{options.to}/{own.replace(':', '-')}.npz",
    *model.get_weights(),
    *[np.array(values) for fit in (first, second) for values in fit.history.values()],
    np.array(evaluated),
    predicted,
)
if [own, "closing"] in options.dies:
    threading.Thread(target=ends, args=(threading.main_thread().ident,), daemon=True).start()
elif any(where == "closing" for _, where in options.dies):
    time.sleep(2.0)  # the others wait for this one meanwhile
