"""Which values of a metric are better, by its name, as Keras' own ``mode="auto"`` guesses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Literal

_LOWER = ("loss", "error", "mse", "mae", "mape", "msle", "rmse", "perplexity", "divergence", "crossentropy")
_HIGHER = ("acc", "auc", "precision", "recall", "f1", "fbeta", "iou", "dice", "r2", "top_k", "similarity")


def better(metric: str) -> Literal["lower", "higher", ""]:
    """``""`` where the name does not tell: a script's own metric may be either."""
    name = metric.lower().removeprefix("val_")
    if any(word in name for word in _HIGHER) and "loss" not in name and "error" not in name:
        return "higher"
    return "lower" if any(word in name for word in _LOWER) else ""


def best_index(metric: str, values: Sequence[float]) -> int | None:
    """Of the best value, the first of several; None where nobody can tell or none is a number."""
    which = better(metric)
    finite = [index for index, value in enumerate(values) if isfinite(value)]
    if not which or not finite:
        return None
    return (min if which == "lower" else max)(finite, key=lambda index: values[index])
