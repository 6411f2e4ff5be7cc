"""All scenarios, by importing every theme."""

from tests.exactness.scenarios import (
    architectures,
    batch_axes,
    callbacks,
    calls,
    data_sources,
    hidden,
    keras_layers,
    keras_losses,
    keras_metrics,
    keras_namespaces,
    keras_optimizers,
    later,
    losses,
    optimizers,
    patterns,
    scripts,
)
from tests.exactness.scenarios.registry import SCENARIOS

__all__ = [
    "SCENARIOS",
    "architectures",
    "batch_axes",
    "callbacks",
    "calls",
    "data_sources",
    "hidden",
    "keras_layers",
    "keras_losses",
    "keras_metrics",
    "keras_namespaces",
    "keras_optimizers",
    "later",
    "losses",
    "optimizers",
    "patterns",
    "scripts",
]
