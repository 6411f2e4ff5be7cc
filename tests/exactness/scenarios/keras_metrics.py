"""Every metric of Keras, on those outputs of one model that suit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

from tests.exactness.keras_names import METRICS, classed
from tests.exactness.scenarios.keras_losses import BITS, CLASS, FAR_FROM_ZERO, NUMBERS, ONE_HOT, SIGNS, smooth
from tests.exactness.scenarios.registry import BATCH, CLASSES, FEATURES, Outcome, scenario

KINDS = {
    "numbers": NUMBERS,
    "far": FAR_FROM_ZERO,
    "signs": SIGNS,
    "bits": BITS,
    "one_hot": ONE_HOT,
    "class": CLASS,
}
_AT = {
    "signs": "Hinge SquaredHinge hinge squared_hinge",
    "bits": "AUC BinaryAccuracy BinaryCrossentropy BinaryIoU FalseNegatives FalsePositives Precision Recall "
    "PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity TrueNegatives "
    "TruePositives Accuracy binary_accuracy binary_crossentropy binary_focal_crossentropy",
    "one_hot": "CategoricalAccuracy CategoricalCrossentropy CategoricalHinge F1Score FBetaScore "
    "KLDivergence OneHotIoU OneHotMeanIoU TopKCategoricalAccuracy categorical_accuracy "
    "categorical_crossentropy categorical_focal_crossentropy categorical_hinge kl_divergence "
    "top_k_categorical_accuracy",
    "class": "IoU MeanIoU SparseCategoricalAccuracy SparseCategoricalCrossentropy "
    "SparseTopKCategoricalAccuracy sparse_categorical_accuracy sparse_categorical_crossentropy "
    "sparse_top_k_categorical_accuracy",
    "far": "MeanAbsolutePercentageError MeanSquaredLogarithmicError Poisson mean_absolute_percentage_error "
    "mean_squared_logarithmic_error poisson",
}
"""The kind of predictions for a metric; ``numbers`` if it is not named."""
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "IoU": {"num_classes": CLASSES, "target_class_ids": [0, 2], "sparse_y_pred": False},
    "MeanIoU": {"num_classes": CLASSES, "sparse_y_pred": False},
    "OneHotIoU": {"num_classes": CLASSES, "target_class_ids": [0, 2]},
    "OneHotMeanIoU": {"num_classes": CLASSES},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "TopKCategoricalAccuracy": {"k": 2},
    "SparseTopKCategoricalAccuracy": {"k": 2},
}


def measured(names: list[str]) -> Outcome:
    """Trained and validated with them; the last batch of each is smaller."""
    x, numbers = smooth(8 * BATCH - 12)
    inputs = keras.Input((FEATURES,))
    outputs, metrics, targets = {}, {}, {}
    for kind, of in KINDS.items():
        seen: Any = inputs
        for layer in of.head():
            seen = layer(seen)
        outputs[kind] = layers.Identity(name=kind)(seen)
        targets[kind] = of.targets(numbers)
        metrics[kind] = [_made(name) for name in names if _kind(name) == kind]
    model = keras.Model(inputs, outputs)
    losses = dict.fromkeys(KINDS, "mse") | {"class": "sparse_categorical_crossentropy"}
    model.compile(keras.optimizers.SGD(0.05), loss=losses, metrics=metrics)
    history = model.fit(x, targets, batch_size=BATCH, verbose=0, validation_split=0.25)
    values = {key: np.divide(value, np.maximum(1.0, np.abs(value))) for key, value in history.history.items()}
    return Outcome([model], {**values, "checked/metrics": np.array(names)})


def _kind(name: str) -> str:
    return next((kind for kind, names in _AT.items() if name in names.split()), "numbers")


def _made(name: str) -> Any:
    metric = getattr(keras.metrics, name)
    return metric(**_ARGUMENTS.get(name, {})) if isinstance(metric, type) else metric


class Averaged(keras.Model):
    """Keeps its own Mean and Sum."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dense(4)
        self.mean = keras.metrics.Mean(name="mean")
        self.sum = keras.metrics.Sum(name="sum")

    @property
    def metrics(self) -> list[Any]:
        return [self.mean, self.sum]

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def train_step(self, data: Any) -> Any:
        logs = super().train_step(data)
        x, y = data
        each = keras.ops.mean(keras.ops.square(y - self(x)), axis=-1)
        self.mean.update_state(each)
        self.sum.update_state(each)
        return {**logs, "mean": self.mean.result(), "sum": self.sum.result() / 500.0}


@scenario(once=True)
def keras_metrics(folder: Path) -> Outcome:
    apart = {"Mean", "Sum"}
    return measured([each for each in classed(METRICS, "exact") if each[0].isupper() and each not in apart])


@scenario(once=True)
def keras_metrics_as_functions(folder: Path) -> Outcome:
    return measured([name for name in classed(METRICS, "exact") if name[0].islower()])


# A sum of 340: neighbouring float32 numbers differ by 3e-5 there.
@scenario(once=True, values_tolerance=1e-4)
def keras_mean_and_sum(folder: Path) -> Outcome:
    x, numbers = smooth(8 * BATCH - 12)
    model = Averaged()
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, numbers, batch_size=BATCH, verbose=0)
    return Outcome([model], {**history.history, "checked/metrics": np.array(["Mean", "Sum"])})
