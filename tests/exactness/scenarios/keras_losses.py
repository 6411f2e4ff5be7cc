"""Every loss of Keras, each with its own head, in whose weights its faults show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

from tests.exactness.keras_names import LOSSES, classed
from tests.exactness.scenarios.registry import BATCH, CLASSES, FEATURES, Outcome, scenario, table

WIDE = 4
"""Numbers per row for losses that accept any."""
SYMBOLS, HEARD, SPOKEN = 5, 8, 3
"""For CTC: symbols, time steps, symbols per row."""


@dataclass(frozen=True)
class Kind:
    """Inputs of a loss: targets from smooth numbers of shape (rows, WIDE), and a head to predict them."""

    targets: Callable[[np.ndarray], np.ndarray]
    head: Callable[[], list[Any]]


def _classes(smooth: np.ndarray) -> Any:
    return np.argmax(smooth[:, :CLASSES], axis=1).astype("int32")


def _one_hot(smooth: np.ndarray) -> Any:
    return keras.utils.to_categorical(_classes(smooth), CLASSES)


def _spoken(smooth: np.ndarray) -> Any:
    return (1 + np.abs(smooth[:, :SPOKEN] * 100).astype("int32") % SYMBOLS).astype("int32")


def dense(units: int, activation: str | None = None) -> Callable[[], list[Any]]:
    return lambda: [layers.Dense(units, activation)]


NUMBERS = Kind(lambda smooth: smooth, dense(WIDE))
FAR_FROM_ZERO = Kind(lambda smooth: 1.0 + 0.5 * smooth, dense(WIDE, "softplus"))
SIGNS = Kind(lambda smooth: np.sign(smooth), dense(WIDE))
BITS = Kind(lambda smooth: (smooth > 0).astype("float32"), dense(WIDE, "sigmoid"))
ONE_HOT = Kind(_one_hot, dense(CLASSES, "softmax"))
CLASS = Kind(_classes, dense(CLASSES, "softmax"))
ALIKE = Kind(_classes, lambda: [layers.Dense(6), layers.UnitNormalization()])
SPEECH = Kind(_spoken, lambda: [layers.Dense(HEARD * (SYMBOLS + 1)), layers.Reshape((HEARD, SYMBOLS + 1))])

_KINDS: dict[str, Kind] = {
    "MeanSquaredError": NUMBERS,
    "MeanAbsoluteError": NUMBERS,
    "MeanAbsolutePercentageError": FAR_FROM_ZERO,
    "MeanSquaredLogarithmicError": FAR_FROM_ZERO,
    "Huber": NUMBERS,
    "LogCosh": NUMBERS,
    "CosineSimilarity": NUMBERS,
    "Poisson": FAR_FROM_ZERO,
    "KLDivergence": ONE_HOT,
    "Hinge": SIGNS,
    "SquaredHinge": SIGNS,
    "CategoricalHinge": ONE_HOT,
    "BinaryCrossentropy": BITS,
    "BinaryFocalCrossentropy": BITS,
    "CategoricalCrossentropy": ONE_HOT,
    "CategoricalFocalCrossentropy": ONE_HOT,
    "CategoricalGeneralizedCrossEntropy": CLASS,
    "SparseCategoricalCrossentropy": CLASS,
    "CTC": SPEECH,
    "Dice": ONE_HOT,
    "Tversky": ONE_HOT,
    "Circle": ALIKE,
}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "Circle": {"gamma": 4},
    "circle": {"gamma": 4},
    "categorical_generalized_cross_entropy": {"q": 0.5},
}
_WEIGHTS = {"MeanAbsolutePercentageError": 0.01, "CTC": 0.02}
"""These are large."""


def _kind(name: str) -> str:
    """A loss class, or a class for a loss function."""
    by_name = {keras.src.utils.naming.to_snake_case(each): each for each in _KINDS}
    return name if name in _KINDS else {**by_name, "ctc": "CTC", "kl_divergence": "KLDivergence"}[name]


def _made(loss: Any, arguments: dict[str, Any]) -> Any:
    if isinstance(loss, type):
        return loss(**arguments)
    return (lambda true, seen: loss(true, seen, **arguments)) if arguments else loss


def smooth(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and WIDE numbers per row in (-1, 1), none of them 0."""
    x, _ = table(rows)
    return x, np.sin(x @ np.random.RandomState(7).normal(size=(FEATURES, WIDE))).astype("float32")


def trained_by(names: list[str], rows: int = 8 * BATCH - 12) -> Outcome:
    """A model with a head for each loss. The last batch is smaller."""
    x, numbers = smooth(rows)
    inputs = keras.Input((FEATURES,))
    outputs, losses, targets, weights = [], [], [], []
    for name in names:
        kind, loss = _KINDS[_kind(name)], getattr(keras.losses, name)
        seen = inputs
        for layer in kind.head():
            seen = layer(seen)
        outputs.append(layers.Identity(name=f"by_{name}")(seen))
        losses.append(_made(loss, _ARGUMENTS.get(name, {})))
        targets.append(kind.targets(numbers))
        weights.append(_WEIGHTS.get(_kind(name), 1.0))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.05), loss=losses, loss_weights=weights)
    history = model.fit(x, targets, batch_size=BATCH, verbose=0, validation_split=0.25)
    values = {key: np.divide(value, np.maximum(1.0, np.abs(value))) for key, value in history.history.items()}
    return Outcome([model], {**values, "checked/losses": np.array(names)})


@scenario(once=True, core=True)
def keras_losses(folder: Path) -> Outcome:
    return trained_by([name for name in classed(LOSSES, "exact") if name[0].isupper()])


@scenario(once=True)
def keras_losses_as_functions(folder: Path) -> Outcome:
    return trained_by([name for name in classed(LOSSES, "exact") if name[0].islower()])


@scenario(once=True, gathers=True)
def keras_losses_gathered(folder: Path) -> Outcome:
    return trained_by(classed(LOSSES, "gathered"), rows=512)
