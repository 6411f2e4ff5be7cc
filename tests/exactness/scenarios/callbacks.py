"""Keras' callbacks and the user's: the same decisions as in one process; files of each member or of the
chief."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, Outcome, scenario, table


def fitted(callbacks: list[Any], epochs: int = 4, rate: float = 0.05, **options: Any) -> Outcome:
    x, y = table(BATCH * 5 + 9)
    model = dense()
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss="mse", **options)
    history = model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=epochs,
        validation_data=table(70, seed=13),
        callbacks=callbacks,
        verbose=0,
    )
    return Outcome([model], history.history)


@scenario(core=True)
def early_stopping_restoring_the_best(folder: Path) -> Outcome:
    stop = keras.callbacks.EarlyStopping("val_loss", patience=2, min_delta=0.03, restore_best_weights=True)
    return fitted([stop], epochs=12)


@scenario()
def reduce_on_plateau(folder: Path) -> Outcome:
    return fitted([keras.callbacks.ReduceLROnPlateau("loss", factor=0.3, patience=1, min_delta=0.05)], 6)


@scenario()
def scheduler(folder: Path) -> Outcome:
    return fitted([keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.7)])


@scenario()
def terminate_on_nan(folder: Path) -> Outcome:
    outcome = fitted([keras.callbacks.TerminateOnNaN()], rate=1e20)
    return Outcome([], {"epochs": len(outcome.values["loss"])})


@scenario(core=True)
def stopping_at_a_batch(folder: Path) -> Outcome:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 3:
                self.model.stop_training = True

    return fitted([Stop()])


@scenario(core=True)
def user_written(folder: Path) -> Outcome:
    """Runs at every batch with the logs of all members; changes the learning rate; evaluates in between."""
    heard: list[float] = []

    class Listen(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            heard.append(logs["loss"])
            if batch == 2:
                self.model.optimizer.learning_rate = 0.02

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            x, y = table(65, seed=14)
            heard.append(self.model.evaluate(x, y, batch_size=64, verbose=0))
            heard.append(float(np.mean(self.model.predict(x, batch_size=64, verbose=0))))

    outcome = fitted([Listen()], epochs=2)
    return Outcome(outcome.models, {**outcome.values, "heard": heard})


@scenario()
def lambda_callback(folder: Path) -> Outcome:
    epochs: list[int] = []
    batches: list[int] = []
    called = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: epochs.append(epoch),
        on_train_batch_end=lambda batch, logs: batches.append(batch),
    )
    outcome = fitted([called], epochs=2)
    return Outcome(outcome.models, {"epochs": epochs, "batches": batches})


@scenario()
def model_checkpoint(folder: Path) -> Outcome:
    """Every member writes it in its own folder, and its script reads it there."""
    path = folder / "best.weights.h5"
    save = keras.callbacks.ModelCheckpoint(path, save_best_only=True, save_weights_only=True)
    outcome = fitted([save], epochs=2)
    wrote = path.exists()
    other = dense()
    other.load_weights(path)
    return Outcome([*outcome.models, other], {"wrote": wrote})


@scenario()
def model_checkpoint_outside(folder: Path) -> Outcome:
    """A folder outside the member's own: the chief alone writes there, and every member reads."""
    with tempfile.TemporaryDirectory() as outside:
        path = Path(outside) / "best.weights.h5"
        save = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
        outcome = fitted([save], epochs=2)
        outcome.models[0].save_weights(Path(outside) / "last.weights.h5")
        wrote = [path.exists(), (Path(outside) / "last.weights.h5").exists()]
        other = dense()
        other.load_weights(path)
    return Outcome([*outcome.models, other], {"per_rank/wrote": np.array(wrote)})


@scenario()
def model_checkpoint_by_batches(folder: Path) -> Outcome:
    save = keras.callbacks.ModelCheckpoint(folder / "newest.keras", save_freq=4)
    outcome = fitted([save], epochs=2)
    wrote = (folder / "newest.keras").exists()
    loaded = keras.models.load_model(folder / "newest.keras")
    return Outcome([*outcome.models, loaded], {"wrote": wrote})


@scenario()
def csv_logger(folder: Path) -> Outcome:
    outcome = fitted([keras.callbacks.CSVLogger(folder / "log.csv")], epochs=2)
    lines = (folder / "log.csv").read_text().splitlines()
    logged = [[float(number) for number in line.split(",")] for line in lines[1:]]
    return Outcome(outcome.models, {"logged": np.array(logged)})


@scenario()
def tensorboard(folder: Path) -> Outcome:
    outcome = fitted([keras.callbacks.TensorBoard(folder / "board")], epochs=2)
    return Outcome(outcome.models, {"per_rank/wrote": (folder / "board").exists()})


@scenario(core=True)
def backup_and_restore(folder: Path) -> Outcome:
    """A fit that fails in its third epoch, and another that continues from each member's own backup."""

    class Break(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                raise RuntimeError("broken off")

    x, y = table(BATCH * 4)

    def attempt(callbacks: list[Any]) -> Any:
        keras.utils.set_random_seed(21)
        model = dense()
        model.compile(keras.optimizers.Adam(0.005), loss="mse")
        options = {"batch_size": BATCH, "epochs": 4, "shuffle": False, "verbose": 0}
        backup = keras.callbacks.BackupAndRestore(folder / "backup")
        try:
            model.fit(x, y, callbacks=[backup, *callbacks], **options)
        except RuntimeError:
            pass
        return model

    attempt([Break()])
    wrote = (folder / "backup").exists()
    model = attempt([])
    return Outcome([model], {"wrote": wrote, "epochs": model.history.epoch})


@scenario()
def backup_of_the_chief_alone(folder: Path) -> Outcome:
    """As if the chief ran in the script's own folder: the others lack the files that an earlier run left
    there."""
    path = folder / "backup"

    class Lose(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                if folder.parent.name != "rank0":
                    shutil.rmtree(path)
                raise RuntimeError("broken off")

    x, y = table(BATCH * 4)
    for callbacks in ([Lose()], []):
        keras.utils.set_random_seed(21)
        model = dense()
        model.compile(keras.optimizers.Adam(0.005), loss="mse")
        backup = keras.callbacks.BackupAndRestore(path)
        options = {"batch_size": BATCH, "epochs": 4, "shuffle": False, "verbose": 0}
        try:
            model.fit(x, y, callbacks=[backup, *callbacks], **options)
        except RuntimeError:
            pass
    return Outcome([model], {"epochs": model.history.epoch})


@scenario()
def swap_ema_weights(folder: Path) -> Outcome:
    x, y = table(BATCH * 5)
    model = dense()
    model.compile(keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.9), loss="mse")
    model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=3,
        validation_split=0.2,
        callbacks=[keras.callbacks.SwapEMAWeights(swap_on_epoch=True)],
        verbose=0,
    )
    return Outcome([model])
