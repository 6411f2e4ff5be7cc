"""Means of scalars inside a step: a scalar stands for the mean over the member's own rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.trainer.exact.members import step as steps


def update_state(original: Callable[..., Any], metric: Any, values: Any, sample_weight: Any = None) -> Any:
    """Mean's or Sum's update_state; weights a bare scalar by the member's part of the batch."""
    step = steps.current()
    if step is not None and sample_weight is None and len(getattr(values, "shape", ())) == 0:
        sample_weight = step.weight
    return original(metric, values, sample_weight)
