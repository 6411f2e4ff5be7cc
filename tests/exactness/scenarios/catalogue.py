"""All scenarios, by importing every theme."""

from tests.exactness.scenarios import optimizers
from tests.exactness.scenarios.registry import SCENARIOS

__all__ = ["SCENARIOS", "optimizers"]
