"""All scenarios, by importing every theme."""

from tests.exactness.scenarios import (
    architectures,
    batch_axes,
    callbacks,
    calls,
    data_sources,
    losses,
    optimizers,
    patterns,
)
from tests.exactness.scenarios.registry import SCENARIOS

__all__ = [
    "SCENARIOS",
    "architectures",
    "batch_axes",
    "callbacks",
    "calls",
    "data_sources",
    "losses",
    "optimizers",
    "patterns",
]
