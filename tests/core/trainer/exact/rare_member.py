"""Run by test_rare: a member that trains the same scripts exactly and with rare meetings.

Called as: python -m tests.core.trainer.exact.rare_member ORDER. ORDER's `names` are jobs, in their order.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from core.project import checkpoint_store
from core.trainer.exact.interface import Checkpointing, StopRequested
from core.vocabulary.errors import TandemError
from tests.exactness import member

DIGITS = Path(__file__).resolve().parents[4] / "resources" / "examples" / "digits" / "digits.npz"
EPOCHS = 3


class Recorder(member.Quiet):
    """Counts what a training sends; asks to stop when told to."""

    asks = False

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[Any] = []
        self.expected: list[Any] = []

    def on_step(self, report: Any) -> None:
        self.reports.append(report)

    def on_measured(self, expectation: Any) -> None:
        self.expected.append(expectation)

    def should_stop(self) -> bool:
        return self.asks


def digest(model: Any) -> str:
    found = hashlib.sha256()
    for weight in model.get_weights():
        found.update(weight.tobytes())
    return found.hexdigest()


def digits() -> tuple[Any, Any]:
    import numpy as np

    data = np.load(DIGITS)
    order = np.random.default_rng(0).permutation(len(data["labels"]))
    return data["images"][order, :, :, None].astype("float32") / 16, data["labels"][order].astype("int32")


def network(optimizer: Any) -> Any:
    import keras

    keras.utils.set_random_seed(member.SEED)
    layers = [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(16, 3, padding="same", activation="tanh"),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(64, activation="tanh", kernel_constraint=keras.constraints.MaxNorm(2.0)),
        keras.layers.Dense(10, activation="softmax"),
    ]
    model = keras.Sequential(layers)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def large_network() -> Any:
    """With a million parameters: its meetings overlap steps."""
    import keras

    keras.utils.set_random_seed(member.SEED)
    hidden = [keras.layers.Dense(1000, activation="tanh"), keras.layers.Dense(1000, activation="tanh")]
    flat = [keras.Input((8, 8, 1)), keras.layers.Flatten()]
    model = keras.Sequential([*flat, *hidden, keras.layers.Dense(10, activation="softmax")])
    model.compile(keras.optimizers.Adam(0.0003), "sparse_categorical_crossentropy")
    return model


def train(optimizer: Any, epochs: int = EPOCHS, ask: Callable[[int, int], None] = lambda *_: None) -> Any:
    import keras

    seen: dict[str, list[Any]] = {"epochs": [], "inside": [], "asked": []}
    x, y = digits()

    class Watch(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            ask(self.epoch, batch)
            if batch == 5 and self.epoch == 0:
                seen["asked"].append(float(self.model.predict(x[:32], verbose=0).sum()))
            seen["inside"].append(digest(self.model))

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            """Runs at every batch, so that sums are rounded alike however slow the machine is."""

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen["epochs"].append(digest(self.model))

    model = network(optimizer)
    stopping = keras.callbacks.EarlyStopping("val_loss", patience=3, restore_best_weights=True)
    history = model.fit(
        x, y, batch_size=64, epochs=epochs, validation_split=0.2, callbacks=[Watch(), stopping], verbose=0
    )
    state = hashlib.sha256()
    for variable in model.optimizer.variables:
        state.update(variable.numpy().tobytes())
    return model, {**seen, "history": history.history, "state": state.hexdigest()}


def plain(model: Any, epochs: int) -> Any:
    """Without callbacks that run at every batch."""
    x, y = digits()
    return model.fit(x, y, batch_size=64, epochs=epochs, verbose=0).history


def main() -> None:
    member.begin()
    order = json.loads(sys.argv[1])
    out, rank = Path(order["out"]), order["rank"]
    observer = Recorder()
    installation = member.join(order, observer)
    host, collectives = installation._host, installation.collectives
    import keras
    import numpy as np
    import tensorflow as tf

    from core.trainer.exact.keras import model_state
    from core.trainer.exact.keras.callback_kinds import WRITERS
    from core.trainer.exact.members.collectives import NoCollectives
    from core.trainer.exact.rare import outer
    from core.trainer.exact.resume.keeper import Keeper
    from core.trainer.exact.steps import calibration
    from core.trainer.exact.steps.loop import Loop

    wanted = calibration.wanted
    record: dict[str, Any] = {}

    def keep(name: str, resume: str = "") -> None:
        folder = Path(resume) if resume else None
        host.keeper = Keeper(Checkpointing(out / name / "kept", 0.0, folder), host, WRITERS)

    def done(name: str, told: dict[str, Any], model: Any = None) -> None:
        told["said"] = list(observer.words)
        told["met_every"] = [report.met_every for report in observer.reports]
        told["wire_bytes"] = observer.reports[-1].wire_bytes if observer.reports else None
        told["expected"] = [each.wire_bytes for each in observer.expected]
        told["audits"] = None if installation.audits is None else installation.audits.why
        if model is not None:
            told["weights"] = digest(model)
            np.savez(out / f"{name}.npz", *model.get_weights())
            if model in model_state.outer_momentum:
                told["momentum"] = float(np.abs(model_state.outer_momentum[model].numpy()).sum())
        record[name] = told
        (out / "times.json").write_text(name)

    adam, sgd = keras.optimizers.Adam, keras.optimizers.SGD
    for name in order["names"]:
        work = out / name
        work.mkdir()
        os.chdir(work)
        keras.backend.clear_session()
        installation.begin_training()
        observer.words.clear()
        observer.reports.clear()
        observer.expected.clear()
        observer.asks = host.stopping = False
        host.step = 0
        host.keeper = Keeper(None, host)
        kind, _, sync = name.partition("@")
        host.sync = sync or "rare=8"
        # Only their expectation is checked, and measuring it takes a while.
        calibration.wanted = wanted if kind == "plain" else lambda *_: False
        match kind:
            case "heard":
                model, told = train(sgd(0.05, 0.9))
                done(name, told, model)
            case "plain":
                model = network(adam(0.003))
                with mock.patch.object(Loop, "step", autospec=True, side_effect=Loop.step) as step:
                    history = plain(model, 8)
                alone = sum(isinstance(call.args[2], NoCollectives) for call in step.call_args_list)
                done(name, {"history": history, "alone": alone}, model)
            case "large":
                model, begin_gather = large_network(), collectives.begin_gather
                with mock.patch.object(collectives, "begin_gather", wraps=begin_gather) as begun:
                    history = plain(model, 4)
                done(name, {"history": history, "overlaps": begun.call_count}, model)
            case "half-rows":
                # Batches of one row: one member has none.
                x, y = digits()
                model = network(sgd(0.05))
                model.jit_compile = True
                model.fit(x[:65], y[:65], batch_size=64, epochs=2, shuffle=False, verbose=0)
                done(name, {}, model)
            case "kept" | "stopped" | "resumed":
                before = checkpoint_store.newest(out / "stopped" / "kept") if kind == "resumed" else None
                keep(name, before.folder if before is not None else "")

                def ask(epoch: int, batch: int, kind: str = kind) -> None:
                    observer.asks = kind == "stopped" and (epoch, batch) == (0, 9) and rank == 1

                try:
                    model, told = train(adam(0.003), 2, ask)
                    done(name, told, model)
                except StopRequested:
                    installation.keep_at_stop()
                    kept = checkpoint_store.newest(out / name / "kept")
                    assert kept is not None
                    listed = checkpoint_store.listing(kept).digest
                    done(name, {"stopped": kept.head.moment.batch, "digest": listed})
                host.keeper.end()
            case "own-step":

                class Own(keras.Model):
                    def train_step(self, data: Any) -> Any:
                        x, y = data
                        with tf.GradientTape() as tape:
                            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
                        own = self.trainable_variables
                        self.optimizer.apply(tape.gradient(loss, own), own)
                        return {"loss": loss}

                x = np.linspace(-1, 1, 640, dtype="float32").reshape(320, 2)
                given = keras.Input((2,))
                model = Own(given, keras.layers.Dense(1)(given))
                model.compile(sgd(0.1))
                model.fit(x, x[:, :1], batch_size=32, epochs=2, verbose=0)
                done(name, {}, model)
            case "gathering" | "whole" | "eager":
                x = np.random.RandomState(2).normal(size=(320, 3)).astype("float32")
                layers = [keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)]
                if kind == "whole":
                    centred = keras.layers.Lambda(lambda a: a - tf.reduce_mean(a, axis=0, keepdims=True))
                    layers.insert(2, centred)
                model = keras.Sequential(layers)
                loss = (lambda y, p: tf.math.reduce_std(p - y)) if kind == "gathering" else "mse"
                model.compile(sgd(0.05), loss, run_eagerly=kind == "eager")
                model.fit(x, x[:, :1], batch_size=32, epochs=2, verbose=0)
                done(name, {}, model)
            case "by-batch":
                x, y = digits()
                model = network(sgd(0.05))
                for begin in range(0, 320, 64):
                    model.train_on_batch(x[begin : begin + 64], y[begin : begin + 64])
                done(name, {}, model)
            case "wrong":
                meetings: list[int] = []

                def mean(arrays: Any, shares: Any, mean: Any = outer.mean, meetings: Any = meetings) -> Any:
                    meetings.append(len(meetings) + 1)
                    return mean(arrays, [1] * len(shares) if len(meetings) >= 3 else shares)

                model = network(sgd(0.05))
                try:
                    with mock.patch.object(outer, "mean", mean):
                        plain(model, 4)
                except TandemError as error:
                    done(name, {"error": str(error), "meetings": meetings})
            case "nan":
                x, y = digits()
                x = x[:640].copy()
                x[64 * 9 + 63] = np.nan  # among the last member's rows
                model = network(sgd(0.05))
                try:
                    model.fit(x, y[:640], batch_size=64, epochs=2, shuffle=False, verbose=0)
                except TandemError as error:
                    done(name, {"error": str(error)})
    member.leave(out, record)


if __name__ == "__main__":
    main()
