"""Every optimizer and learning-rate schedule of Keras: each trains its own model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

from tests.exactness.keras_names import OPTIMIZERS, SCHEDULES, classed
from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table


def _made(name: str) -> Any:
    cls = getattr(keras.optimizers, name)
    match name:
        case "LossScaleOptimizer":
            return cls(keras.optimizers.SGD(0.05), initial_scale=64.0)
        case "OptimizerMap" | "MultiOptimizer":
            by_layer = {"outer/.*": keras.optimizers.Adam(0.01)}
            every = keras.optimizers.OptimizerMap(keras.optimizers.SGD(0.05), by_layer)
            return keras.optimizers.MultiOptimizer(every)
        case _:
            return cls(learning_rate=0.01)


def _scheduled(name: str) -> Any:
    cls = getattr(keras.optimizers.schedules, name)
    match name:
        case "PiecewiseConstantDecay":
            return cls([3, 6], [0.05, 0.02, 0.01])
        case "PolynomialDecay" | "CosineDecay":
            return cls(0.05, 6)
        case "CosineDecayRestarts":
            return cls(0.05, 3)
        case _:
            return cls(0.05, 3, 0.5)


def trained(optimizer: Any) -> Any:
    x, y = table(8 * BATCH - 12)
    inner = layers.Dense(6, "tanh", name="inner")
    model = keras.Sequential([keras.Input((FEATURES,)), inner, layers.Dense(1, name="outer")])
    model.compile(optimizer, loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return model


@scenario(once=True)
def keras_optimizers(folder: Path) -> Outcome:
    names = classed(OPTIMIZERS, "exact")
    return Outcome([trained(_made(name)) for name in names], {"checked/optimizers": np.array(names)})


@scenario(once=True)
def keras_schedules(folder: Path) -> Outcome:
    names = classed(SCHEDULES, "exact")
    models = [trained(keras.optimizers.SGD(_scheduled(name))) for name in names]
    return Outcome(models, {"checked/schedules": np.array(names)})
