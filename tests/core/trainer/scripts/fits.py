"""An ordinary Keras script: a line through noise, saved nowhere. ``--epochs N``, ``--fail-in-epoch N``,
``--fail-task T``, ``--odd``: a second model, of a class that Keras cannot save. ``--place``: prints on which
sockets this process listens, and which task it was given."""

import argparse
import json
import os
import time
from typing import Any

import keras
import numpy as np
import psutil

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--fail-in-epoch", type=int, default=-1)
parser.add_argument("--fail-task", default="")
parser.add_argument("--slow", type=float, default=0.0)
parser.add_argument("--odd", action="store_true")
parser.add_argument("--place", action="store_true")
options = parser.parse_args()
task = json.loads(os.environ.get("TF_CONFIG", '{"task": {"type": "chief"}}'))["task"]["type"]


class Events(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        if options.slow:
            time.sleep(options.slow)

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        if epoch == options.fail_in_epoch and options.fail_task in ("", task):
            raise ValueError("the data ran out")

    def on_train_end(self, logs: object = None) -> None:
        print("callbacks ended", flush=True)


random = np.random.default_rng(0)
x = random.normal(size=(64, 4)).astype("float32")
y = x @ np.array([[1.0], [-2.0], [0.5], [3.0]], "float32")
model = keras.Sequential(
    [keras.layers.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)]
)
model.compile("sgd", "mse", metrics=["mae"])
model.fit(x, y, batch_size=16, epochs=options.epochs, verbose=0, callbacks=[Events()])
print("evaluated", model.evaluate(x, y, verbose=0))
print("predicted", model.predict(x[:4], verbose=0).ravel().tolist())


class Odd(keras.Model):
    def __init__(self, activation: Any) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.activation = activation

    def call(self, x: Any) -> Any:
        return self.activation(self.dense(x))


if options.odd:
    odd = Odd(activation=lambda x: 2 * x)
    odd.compile("sgd", "mse")
    odd.fit(x, y, batch_size=16, verbose=0)

if options.place:
    own = psutil.Process().net_connections("all")
    listens = [list(each.laddr) for each in own if each.status == psutil.CONN_LISTEN]
    told = [os.environ[f"TF_CONFIG_{name}"] for name in ("CLUSTER", "TASK_TYPE", "TASK_INDEX")]
    print("place", json.dumps([listens, *told]), flush=True)
