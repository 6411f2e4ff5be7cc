"""Every way of stepping: momentum, Adam, averaging, schedules, clipping, accumulation, loss scaling."""

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


@scenario()
def adamw(folder: Path) -> Outcome:
    return trained(keras.optimizers.AdamW(0.005, weight_decay=0.02))


@scenario()
def rmsprop(folder: Path) -> Outcome:
    return trained(keras.optimizers.RMSprop(0.002))


@scenario()
def sgd_weight_decay(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.05, weight_decay=0.01))


@scenario(core=True)
def ema(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.9))


@scenario()
def ema_overwriting(folder: Path) -> Outcome:
    options = {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 5}
    return trained(keras.optimizers.Adam(0.005, **options))


@scenario()
def learning_rate_schedule(folder: Path) -> Outcome:
    schedule = keras.optimizers.schedules.CosineDecay(0.1, decay_steps=20, warmup_steps=4, warmup_target=0.1)
    return trained(keras.optimizers.SGD(schedule, momentum=0.9))


@scenario(core=True)
def clipnorm(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.2, clipnorm=0.05))


@scenario()
def clipvalue(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.2, clipvalue=0.01))


@scenario()
def global_clipnorm(folder: Path) -> Outcome:
    return trained(keras.optimizers.Adam(0.005, global_clipnorm=0.05))


@scenario(core=True)
def gradient_accumulation(folder: Path) -> Outcome:
    return trained(keras.optimizers.Adam(0.01, gradient_accumulation_steps=4, clipnorm=0.1))


@scenario()
def static_loss_scale(folder: Path) -> Outcome:
    return trained(keras.optimizers.SGD(0.05, loss_scale_factor=128.0))


@scenario(core=True)
def loss_scale_with_an_overflow(folder: Path) -> Outcome:
    """A row of the chief's overflows in the 8th batch, and one of the last member's in the 12th."""
    x, y = table()
    x[7 * BATCH + 5] = 3e38
    x[11 * BATCH + 63] = 3e38
    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(0.005), initial_scale=1024.0, dynamic_growth_steps=4
    )
    model.compile(optimizer, loss="mse")
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    state = {"scale": optimizer.dynamic_scale, "iterations": optimizer.iterations}
    return Outcome([model], {key: keras.ops.convert_to_numpy(value) for key, value in state.items()})


@scenario()
def frozen_layer(folder: Path) -> Outcome:
    x, y = table()
    model = dense()
    model.layers[0].trainable = False
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario()
def weight_constraint(folder: Path) -> Outcome:
    x, y = table()
    limit = keras.constraints.MaxNorm(0.5)
    model = keras.Sequential(
        [keras.Input((FEATURES,)), keras.layers.Dense(12, kernel_constraint=limit), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])
