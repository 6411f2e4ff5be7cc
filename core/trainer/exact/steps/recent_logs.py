"""Log values since the previous report: Keras' own are means over the epoch so far, which make curves jump
where an epoch begins."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Mapping
from math import isclose, isfinite
from typing import Any

import numpy as np

from core.trainer.exact.keras import keras_private as private

CLOSE = 1e-4
"""Relative tolerance between a log value and its metric's: both are float32."""


class RecentLogs:
    """One instance for all models of a training."""

    def __init__(self) -> None:
        self._before: weakref.WeakKeyDictionary[Any, tuple[float, float]] = weakref.WeakKeyDictionary()
        """Each metric's total and count at the last report."""
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        """The log value that each metric gives."""
        self._epoch: Hashable = None

    def since(self, model: Any, epoch: Hashable, logs: Mapping[str, float]) -> dict[str, float]:
        """Means over the rows since the previous call in the same ``epoch``. Leaves out metrics that are not
        means, as they say nothing about part of an epoch; values that are not metrics stay."""
        if epoch != self._epoch:
            self._before.clear()
            self._epoch = epoch
        found, means, others = dict(logs), set[str](), set[str]()
        for metric in _metrics(model):
            names = [name for name in logs if name == metric.name or name.endswith(f"_{metric.name}")]
            if not names:
                continue
            if type(metric).result is not private.reduction_metrics.Mean.result:
                others.update(names)
                continue
            total, count = float(np.asarray(metric.total)), float(np.asarray(metric.count))
            if not isfinite(total):
                continue  # The value is not finite either.
            mean = total / count if count else 0.0
            name = next((name for name in names if isclose(logs[name], mean, rel_tol=CLOSE)), None)
            if name is None:  # A value of the script's own; or the metric already counts a validation.
                others.update(filter(None, [self._names.get(metric)]))
                continue
            means.add(name)
            self._names[metric] = name
            total_before, count_before = self._before.get(metric, (0.0, 0.0))
            self._before[metric] = total, count
            if count > count_before:
                found[name] = (total - total_before) / (count - count_before)
        for name in others - means:
            found.pop(name, None)
        return found


def _metrics(model: Any) -> Iterator[Any]:
    """All metrics; those given to ``compile`` are inside one of their own."""
    for metric in private.every_metric(model):
        yield from getattr(metric, "metrics", None) or (metric,)
