"""Run by test_resumed: a single process stops fits in odd places and resumes them.

Called as: python -m tests.core.trainer.exact.resumed_member FOLDER. Prints the results as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from core.project import checkpoint_store
from core.trainer.exact.interface import Checkpointing, Cluster, StopRequested
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.patch.install import install
from core.trainer.exact.resume import callback_state, randomness, trees
from core.trainer.exact.resume.keeper import Keeper
from core.vocabulary.errors import TandemError
from tests.core.trainer.exact.kept_member import SEED, Asked

ROWS, BATCH = 40, 4
X = np.random.default_rng(3).normal(size=(ROWS, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


class Writes(keras.callbacks.Callback):
    """A user's callback, with paths and commands among its state."""

    count = 0

    def __init__(self) -> None:
        super().__init__()
        self.path = "/own/log.txt"
        self.commands = ["true"]
        self.by_text: dict[str, float] = {}
        self.sums = {"loss": 0.0}
        self.best = float("inf")
        self.seen: list[float] = []
        self.folder = Path("/own")

    @property
    def limit(self) -> int:
        return 3

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch


HOSTILE = {
    "path": "/elsewhere/.bashrc",
    "commands": ["rm -r ."],
    "by_text": {"rm": 1.0},
    "folder": 3,
    "on_epoch_begin": 3,
    "limit": 4,
    "__dict__": {},
    "nobody": 1,
    "sums": {"loss": 2.0},
    "best": 0.5,
    "seen": [1.0, 2.0],
    "epoch": 2,
    "count": 7,
    3: 4,
}


def hostile() -> dict[str, Any]:
    callback, said = Writes(), list[str]()
    callback_state.restore(callback, ["Writes", HOSTILE], said.append)
    history = keras.callbacks.History()
    callback_state.restore(history, ["History", {"history": {"loss": [1.0]}}], said.append)
    callback_state.restore(history, ["History", {"history": {"../x": [1.0]}}], said.append)
    callback_state.restore(history, ["History", {"history": {"loss; rm": [1.0]}}], said.append)
    state = {**vars(callback), "folder": str(callback.folder), "limit": callback.limit}
    return {
        "state": {name: value for name, value in state.items() if not name.startswith(("_", "params"))},
        "hook": callable(callback.on_epoch_begin),
        "history": history.history,
        "said": said,
    }


def generator() -> list[bool]:
    """A new process has not created Keras' own generator when it resumes."""
    keras.utils.set_random_seed(5)
    keras.random.uniform(())
    state = randomness.capture()
    then = [float(keras.random.uniform(())), random.random()]
    keras.backend.clear_session()
    keras.utils.set_random_seed(6)
    absent = private.global_seed_generator() is None
    randomness.restore(state)
    return [absent, [float(keras.random.uniform(())), random.random()] == then]


def harmful_randomness() -> list[str]:
    """A position beyond NumPy's state would make it read this process' memory."""
    state = randomness.capture()
    name, key, place, *rest = before = state["numpy"]
    refused = []
    for harm in (
        {"numpy": (name, key, 10**6, *rest)},
        {"numpy": (name, key, -1, *rest)},
        {"numpy": (name, key[:10], place, *rest)},
        {"python": (3, np.full(625, 2**40, np.uint64), None)},
        {"keras": np.zeros(3, np.int64)},
    ):
        try:
            randomness.restore({**state, **harm})
        except TandemError as error:
            refused.append(error.code)
    assert randomness.capture()["numpy"][2] == before[2]
    return refused


def harmful_trees() -> list[str]:
    sound = {"model": [np.zeros(3)], "history": ["History", {}], "callbacks": [], "random": {}, "step": 3}
    trees.check(sound, trees.Outcome)
    refused = []
    for harm in ({"step": -1}, {"step": 10**30}, {"model": 3}, {"callbacks": [3]}, {"history": ["x"]}):
        try:
            trees.check({**sound, **harm}, trees.Outcome)
        except TandemError as error:
            refused.append(error.code)
    return refused


def several_numbers() -> dict[str, Any]:
    """The results of a fit and an evaluation with a metric of one number per column."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="sigmoid")])
    model.compile("sgd", "mse", metrics=[keras.metrics.F1Score(average=None)])
    y = np.hstack([Y > 0, Y <= 0]).astype("float32")
    history = model.fit(X, y, batch_size=BATCH, epochs=2, verbose=0).history
    _, columns = model.evaluate(X, y, verbose=0)
    return {"history": np.shape(history["f1_score"]), "evaluated": np.shape(columns)}


def train(asked: Asked, place: tuple[int, int], together: int) -> dict[str, Any]:
    """`place`: the epoch and the batch after which it stops."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(SEED)

    class Stop(keras.callbacks.Callback):
        epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if (self.epoch, batch) == place:
                asked.asks = True
                host.stopping = self.model.stop_training = True

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), loss="mse", steps_per_execution=together)
    # A new order at every iteration, of which each validation sees a part.
    validation = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(ROWS, seed=1).batch(BATCH)
    told: dict[str, Any] = {}
    try:
        history = model.fit(
            X,
            Y,
            batch_size=BATCH,
            epochs=5,
            validation_data=validation,
            validation_steps=2 * together,
            callbacks=[Stop()],
            verbose=0,
        )
        told["history"] = history.history
    except StopRequested:
        told["stopped"] = True
    return {**told, "weights": [weights.tolist() for weights in model.get_weights()], "step": host.step}


def scene(folder: Path, asked: Asked, place: tuple[int, int], together: int = 1) -> dict[str, Any]:
    """Complete, stopped and resumed."""
    nowhere, found = (-1, -1), None
    told: dict[str, Any] = {}
    for kind, where in (("whole", nowhere), ("stopped", place), ("resumed", nowhere)):
        host.stopping, host.step, asked.asks, asked.said = False, 0, False, []
        host.said.clear()
        resume = None if found is None else Path(found.folder)
        host.keeper = Keeper(Checkpointing(folder / kind, 1e6, resume if kind == "resumed" else None), host)
        told[kind] = train(asked, where, together)
        told[kind]["said"] = asked.said
        found = checkpoint_store.newest(folder / kind)
        if found is not None and kind == "stopped":
            told["moment"] = [found.head.moment.epoch, found.head.moment.batch, found.head.moment.step]
    return told


if __name__ == "__main__":
    out, told = Path(sys.argv[1]), {"hostile": hostile(), "generator": generator()}
    told |= {"harmful randomness": harmful_randomness(), "harmful trees": harmful_trees()}
    observer = Asked()
    installation = install(Cluster(tf.distribute.get_strategy(), 0, (1,), SEED), observer)
    host = installation._host
    with installation.scope():
        told["several"] = several_numbers()
        told["validated"] = scene(out / "validated", observer, (3, 4))
        told["together"] = scene(out / "together", observer, (1, 11), together=4)
    print(json.dumps(told))
