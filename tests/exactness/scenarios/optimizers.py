"""Every way of stepping: momentum, Adam, averaging, schedules, clipping, accumulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras

from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table


def dense() -> Any:
    return keras.Sequential(
        [keras.Input((FEATURES,)), keras.layers.Dense(12, activation="tanh"), keras.layers.Dense(1)]
    )


def trained(optimizer: Any, **compile_options: Any) -> Outcome:
    x, y = table()
    model = dense()
    model.compile(optimizer, loss="mse", **compile_options)
    history = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
    return Outcome([model], {"loss": history.history["loss"]})


@scenario(core=True)
def sgd(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.05))


@scenario(core=True)
def sgd_momentum(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True))


@scenario(core=True)
def adam(folder: Path) -> Outcome:
    return trained(keras.optimizers.Adam(0.005))
