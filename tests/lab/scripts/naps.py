"""Trains on noise for so many steps. One member may fall asleep or fail in a callback, all within a step."""

from __future__ import annotations

import argparse
import hashlib
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

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--pace-s", type=float, default=0.02, help="each step takes at least so long")
parser.add_argument("--asleep", type=float, nargs=2, default=(-1, 0), metavar=("STEP", "S"))
parser.add_argument("--slow", type=float, nargs=2, default=(-1, 0), metavar=("STEP", "S"))
parser.add_argument(
    "--grow", type=int, default=-1, metavar="STEP", help="the first worker takes memory without end then"
)
parser.add_argument(
    "--fill", type=int, default=-1, metavar="STEP", help="the first worker fills its disk then"
)
parser.add_argument(
    "--harm",
    default="",
    metavar="PREFIX",
    help="a member does so once there is PREFIX-worker-0-grow, or -fill",
)
parser.add_argument("--brake", default="", help="while this file exists, each step takes a second")
parser.add_argument(
    "--pure", action="store_true", help="no step does anything but train: the brake is in the callback"
)
parser.add_argument("--epochs", type=int, default=1, help="the steps are shared out to so many")
parser.add_argument("--logs", action="store_true", help="logs, and a model of each epoch")
parser.add_argument("--validate", action="store_true", help="each epoch ends with a validation")
parser.add_argument(
    "--closing", action="store_true", help="the chief is killed once it waits for the others at the end"
)
args = parser.parse_args()

BATCH = 64
task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief", "index": 0})
is_first_worker = task["type"] == "worker" and task["index"] == 0
present = -1


def is_to(harm: str, step: int) -> bool:
    ordered = Path(f"{args.harm}-{task['type']}-{task['index']}-{harm}")
    return (present == step and is_first_worker) or bool(args.harm and ordered.exists())


def is_braked() -> bool:
    return bool(args.brake) and Path(args.brake).exists()


def nap(what: str, seconds: float) -> None:
    began_s = time.monotonic()
    time.sleep(seconds)
    print(f"{task['type']} {what} at step {present} took {time.monotonic() - began_s:.1f} s", flush=True)


class Naps(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        global present
        present += 1
        if is_to("grow", args.grow):
            taken = []
            while True:
                taken.append(b"\1" * (1 << 24))
        if is_to("fill", args.fill):
            with Path("big").open("wb") as file:
                while True:
                    file.write(bytes(1 << 20))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        time.sleep(1.0 if args.pure and is_braked() else args.pace_s)
        if present == args.asleep[0] and task["type"] == "worker":
            nap("callback", args.asleep[1])


class Slow(keras.Model):
    slept = False

    def train_step(self, data: Any) -> Any:
        tf.py_function(self.stay, [], [])
        return super().train_step(data)

    def stay(self) -> None:
        if is_braked():
            time.sleep(1.0)
        if present == args.slow[0] and not self.slept:
            self.slept = True
            nap("step", args.slow[1])


def dies_closing(main: int) -> None:
    """Once the script's last line is over, its model is saved, and the main thread waits for the others."""
    while True:
        frame: Any = sys._current_frames().get(main)
        while frame is not None and frame.f_code.co_name != "barrier":
            frame = frame.f_back
        if frame is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)


class Batches(keras.metrics.Metric):
    """A digest of which rows each step trained with, summed up exactly: each row adds a number of its own,
    whichever member computes it."""

    def __init__(self, name: str = "batches") -> None:
        super().__init__(name=name, dtype="int64")
        self.digest = self.add_weight(name="digest", initializer="zeros", dtype="int64")

    def update_state(self, y: Any, predicted: Any, sample_weight: Any = None) -> None:
        row, step = tf.cast(y[:, 1], "int64"), tf.cast(model.optimizer.iterations, "int64")
        self.digest.assign_add(tf.reduce_sum((row + 1) * (step + 1) * 2654435761 % 1000003))

    def result(self) -> Any:
        return tf.cast(self.digest, "float64")


def loss(y: Any, predicted: Any) -> Any:
    return keras.losses.sparse_categorical_crossentropy(y[:, 0], predicted)


keras.utils.set_random_seed(7)
random = np.random.default_rng(0)
rows = random.standard_normal((args.steps // args.epochs * BATCH, 32)).astype("float32")
labels = np.stack([random.integers(0, 10, len(rows)), np.arange(len(rows))], axis=1)
inputs = keras.Input((32,))
# Smooth: with a corner such as ReLU's, a sum in another order flips a row that lies on it in one training of
# four, and the weights end 2e-3 apart on a single machine, too.
hidden = keras.layers.Dropout(0.2)(keras.layers.Dense(64, activation="tanh")(inputs))
model = (keras.Model if args.pure else Slow)(inputs, keras.layers.Dense(10, activation="softmax")(hidden))
model.compile("adam", loss, metrics=[Batches()])
logs = [
    keras.callbacks.CSVLogger("log.csv", append=True),
    keras.callbacks.CSVLogger("anew.csv"),
    keras.callbacks.ModelCheckpoint("models/{epoch:02d}.keras"),
    keras.callbacks.BackupAndRestore("backup"),
]
history = model.fit(
    rows,
    labels,
    batch_size=BATCH,
    epochs=args.epochs,
    verbose=0,
    validation_data=(rows[:200], labels[:200]) if args.validate else None,
    callbacks=[Naps(), *(logs if args.logs else [])],
)
print(f"batches: {[int(each) for each in history.history['batches']]}", flush=True)
for path in ("log.csv", "anew.csv") if args.logs else ():
    print(f"{path}: {hashlib.sha256(Path(path).read_bytes()).hexdigest()}", flush=True)
if args.closing and task["type"] == "chief":
    threading.Thread(target=dies_closing, args=(threading.main_thread().ident,), daemon=True).start()
elif args.closing:
    time.sleep(2.0)
