"""The best that each metric of a run was, where its name tells which values are better. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Literal

from core.vocabulary.progress import Best, EpochEnd

MOST = 32
"""Metrics of a run whose best is kept; a script may log a name for each layer."""
_HIGHER = ("acc", "auc", "precision", "recall", "f1", "fbeta", "iou", "dice", "r2", "top_k", "similarity")
_LOWER = ("loss", "error", "mse", "mae", "mape", "msle", "rmse", "perplexity", "divergence", "crossentropy")


def better(metric: str) -> Literal["lower", "higher", ""]:
    """Which values are better, by the name, as Keras' own ``mode="auto"`` guesses. ``""`` where the name does
    not tell: a script's own metric may be either."""
    name = metric.lower().removeprefix("val_")
    if any(word in name for word in _HIGHER) and "loss" not in name and "error" not in name:
        return "higher"
    return "lower" if any(word in name for word in _LOWER) else ""


def with_epoch(best: Mapping[str, Best], epoch: EpochEnd) -> dict[str, Best]:
    """``best`` after one more epoch, if it was whole. Of equal values the first one stays."""
    found = dict(best)
    if not epoch.whole:
        return found
    for metric, value in epoch.logs.items():
        which = better(metric)
        if not which or not isfinite(value) or (metric not in found and len(found) >= MOST):
            continue
        if metric not in found or beats(metric, value, found[metric].value):
            found[metric] = Best(value=value, epoch=epoch.epoch)
    return found


def best_of(epochs: Iterable[EpochEnd]) -> dict[str, Best]:
    """Of all epochs of one member, in order."""
    best: dict[str, Best] = {}
    for epoch in epochs:
        best = with_epoch(best, epoch)
    return best


def beats(metric: str, value: float, other: float) -> bool:
    """Whether ``value`` is the better one, as far as the metric's name tells."""
    which = better(metric)
    return (which == "lower" and value < other) or (which == "higher" and value > other)


def deciding(metrics: Iterable[str]) -> str:
    """The metric by which runs are compared: validation before training, the loss first; ``""``: none."""
    known = [metric for metric in metrics if better(metric)]
    order = sorted(
        known, key=lambda name: (not name.startswith("val_"), name.removeprefix("val_") != "loss", name)
    )
    return order[0] if order else ""
