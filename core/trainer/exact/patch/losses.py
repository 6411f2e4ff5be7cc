"""Loss reductions over the global batch: what Keras' own do, but with divisors of all members.

Each takes Keras' original first, for use outside a step, and has Keras' arguments otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from keras import ops

from core.trainer.exact.members import step as steps


def reduce_values(
    original: Callable[..., Any],
    values: Any,
    sample_weight: Any = None,
    reduction: str | None = "sum_over_batch_size",
) -> Any:
    """Weighted values to one loss: this member's estimate of the global one (see step.py)."""
    step = steps.current()
    if step is None or tuple(values.shape) in ((), (0,)):
        return original(values, sample_weight, reduction)
    if reduction == "sum":
        return step.per_weight(ops.sum(values))
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        divisor = step.total(ops.cast(ops.sum(sample_weight), values.dtype))
        return step.per_weight(tf.math.divide_no_nan(ops.sum(values), divisor))
    return original(values, sample_weight, reduction)


def apply_mask(
    original: Callable[..., Any], sample_weight: Any, mask: Any, dtype: Any, reduction: Any
) -> Any:
    """A mask as weights whose mean is over the valid entries of all members.

    Keras' weight is total/valid for valid entries; here total is the own entries (the mean divides by them)
    and valid is all members' valid entries, taken back by the member's weight.
    """
    step = steps.current()
    if step is None or mask is None or reduction not in ("mean", "sum_over_batch_size"):
        return original(sample_weight, mask, dtype=dtype, reduction=reduction)
    entries = ops.cast(ops.size(mask), dtype)
    valid = step.total(ops.sum(ops.cast(mask, dtype)))
    weight = step.per_weight(tf.math.divide_no_nan(entries, valid))
    weights = ops.cast(mask, dtype) * weight
    return original(sample_weight, weights, dtype=dtype, reduction="sum")


def add_loss(original: Callable[..., Any], model: Any, loss: Any) -> Any:
    """An additional loss. One value: taken as a mean over rows, or as free of them. One a row: Keras sums."""
    step = steps.current()
    total = original(model, loss)
    if step is not None and len(loss.shape) > 0 and loss.shape[0] is None:
        return step.per_weight(total)
    return total
