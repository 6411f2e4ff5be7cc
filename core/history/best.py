"""The best value of each metric of a run, if the metric's name tells which values are better; the best trials
of a sweep. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Literal

from core.vocabulary.progress import Best, EpochEnd
from core.vocabulary.sweep import Sweep, Trial

MOST = 32
"""Most metrics per run with a best value kept; a script may log one for each layer."""
_HIGHER = ("acc", "auc", "precision", "recall", "f1", "fbeta", "iou", "dice", "top_k", "similarity")
_LOWER = ("loss", "error", "mse", "mae", "mape", "msle", "rmse", "perplexity", "divergence", "crossentropy")


def better(metric: str) -> Literal["lower", "higher", ""]:
    """The better direction of a metric, judged by its name, like Keras' ``mode="auto"``. ``""`` if the name
    does not tell: a script's own metric may be either."""
    name = metric.lower().removeprefix("val_")
    higher = "r2" in name.split("_") or any(word in name for word in _HIGHER)
    if higher and "loss" not in name and "error" not in name:
        return "higher"
    return "lower" if any(word in name for word in _LOWER) else ""


def with_epoch(best: Mapping[str, Best], epoch: EpochEnd) -> dict[str, Best]:
    """``best`` after one more epoch; incomplete epochs don't count. Of equal values the first one stays. With
    more than ``MOST`` metrics, losses take precedence, then validation metrics."""
    found = dict(best)
    if not epoch.whole:
        return found
    for metric, value in epoch.logs.items():
        known = better(metric) and isfinite(value)
        if known and (metric not in found or beats(metric, value, found[metric].value)):
            found[metric] = Best(value=value, epoch=epoch.epoch)
    if len(found) > MOST:
        found = {metric: found[metric] for metric in sorted(found, key=_losses_first)[:MOST]}
    return found


def beats(metric: str, value: float, other: float) -> bool:
    """Whether ``value`` is better, as far as the metric's name tells."""
    which = better(metric)
    return (which == "lower" and value < other) or (which == "higher" and value > other)


def deciding(metrics: Iterable[str]) -> str:
    """The metric for comparing runs: validation before training, the loss first; ``""``: none."""
    return min((metric for metric in metrics if better(metric)), key=_order, default="")


def metric_of(sweep: Sweep) -> str:
    """The metric by which a sweep's trials are compared; ``""``: no trial has a suitable one yet."""
    return deciding({metric for trial in sweep.trials for metric in trial.best})


def ranked(sweep: Sweep) -> tuple[Trial, ...]:
    """The finished trials that have the deciding metric, the best first; equal ones in their order. Trials
    whose loss became NaN are left out."""
    metric = metric_of(sweep)
    sign = -1.0 if better(metric) == "higher" else 1.0
    able = [
        trial
        for trial in sweep.trials
        if trial.status == "finished" and metric in trial.best and trial.diverged is None
    ]
    return tuple(sorted(able, key=lambda trial: sign * trial.best[metric].value))


def best_trial(sweep: Sweep) -> Trial | None:
    """The first of ``ranked``; None: there is none."""
    return next(iter(ranked(sweep)), None)


def _order(metric: str) -> tuple[bool, bool, str]:
    return not metric.startswith("val_"), metric.removeprefix("val_") != "loss", metric


def _losses_first(metric: str) -> tuple[bool, bool, str]:
    return metric.removeprefix("val_") != "loss", not metric.startswith("val_"), metric
