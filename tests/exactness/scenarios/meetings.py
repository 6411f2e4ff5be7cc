"""What docs/slow-networks.md promises a script whose members meet rarely; run by test_rare_matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, Outcome, of_its_own_test, table


@of_its_own_test
def schedule_by_all_steps(folder: Path) -> Outcome:
    """Also by those in which a member has no rows: each epoch's last batch is one row."""
    x, y = table(BATCH * 5 + 1)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=1, decay_rate=0.9)
    rates: list[float] = []
    model = dense()
    model.compile(keras.optimizers.Adam(schedule), loss="mse")
    listen = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: rates.append(float(model.optimizer.learning_rate))
    )
    model.fit(x, y, batch_size=BATCH, epochs=2, callbacks=[listen], verbose=0)
    np.testing.assert_allclose(rates, 0.1 * 0.9 ** np.arange(1.0, 13.0), rtol=1e-5)
    return Outcome([model], {"rates": rates})


@of_its_own_test
def moving_averages_at_epochs_ends(folder: Path) -> Outcome:
    seen: dict[str, Any] = {}

    class Look(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            for variable in self.model.optimizer.variables:
                if "average" in variable.path:
                    seen[f"{epoch} {variable.path}"] = np.array(variable)

    x, y = table(BATCH * 5 + 9)
    model = dense()
    model.compile(keras.optimizers.Adam(0.005, use_ema=True, ema_momentum=0.9), loss="mse")
    model.fit(x, y, batch_size=BATCH, epochs=3, callbacks=[Look()], verbose=0)
    assert len(seen) == 3 * 4
    return Outcome([model], seen)


@of_its_own_test
def plateau_and_stop_by_the_validation(folder: Path) -> Outcome:
    """No loss falls by 10: both take the first epoch for the best one."""
    rates: list[float] = []
    model = dense()
    listen = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rates.append(float(model.optimizer.learning_rate))
    )
    plateau = keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.1, patience=1, min_delta=10.0)
    stop = keras.callbacks.EarlyStopping("val_loss", patience=3, min_delta=10.0, restore_best_weights=True)
    x, y = table(BATCH * 5 + 9)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss="mse")
    history = model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=9,
        validation_data=table(70, seed=13),
        callbacks=[plateau, listen, stop],
        verbose=0,
    )
    np.testing.assert_allclose(rates, [0.05, 0.005, 0.0005, 0.00005], rtol=1e-5)
    assert stop.best_epoch == 0
    return Outcome([model], {**history.history, "rates": rates})


@of_its_own_test
def weights_that_a_callback_reads(folder: Path) -> Outcome:
    """At batches' ends they are each laptop's own, at epochs' ends the same."""
    seen: dict[str, list[Any]] = {"own/at_batches_ends": [], "at_epochs_ends": []}

    class Read(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen["own/at_batches_ends"].append(self.model.get_weights()[0])

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen["at_epochs_ends"].append(self.model.get_weights()[0])

    x, y = table(BATCH * 5 + 9)
    model = dense()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss="mse")
    model.fit(x, y, batch_size=BATCH, epochs=2, callbacks=[Read()], verbose=0)
    return Outcome([model], seen)
