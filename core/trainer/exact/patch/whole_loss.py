"""A compiled loss of the batch as a whole: predictions and targets of all rows are gathered for it.

Each member predicts its own rows, then computes the loss of all rows, as one process does; the gradient that
flows back into a member's predictions is that loss's gradient at its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import NoCollectives
from core.trainer.exact.members.step import Step


def compiled_loss(
    original: Callable[..., Any], loss: Any, y_true: Any, y_pred: Any, sample_weight: Any = None
) -> Any:
    """``CompileLoss.call``."""
    step = steps.current()
    if step is None:
        return original(loss, y_true, y_pred, sample_weight)
    given = (y_true, y_pred, sample_weight)
    leaves = [leaf for leaf in private.flatten(given) if leaf is not None]
    step.record.loss_row_bytes.append(_row_bytes(leaves))
    if not step.gathers or isinstance(step.collectives, NoCollectives):
        return original(loss, *given)
    gathered = iter([_of_all(step, leaf) for leaf in leaves])
    flat = [None if leaf is None else next(gathered) for leaf in private.flatten(given)]
    whole = private.pack_sequence_as(given, flat)
    with steps.outside():
        return original(loss, *whole)


def _row_bytes(leaves: list[Any]) -> int | None:
    """Bytes sent for one row; None if unknown, or not per row."""
    total = 0
    for leaf in leaves:
        if isinstance(leaf, tf.RaggedTensor | tf.SparseTensor) or private.mask_of(leaf) is not None:
            return None
        tensor = tf.convert_to_tensor(leaf)
        if tensor.shape.rank in (None, 0) or not tensor.shape[1:].is_fully_defined():
            return None
        total += (tensor.shape[1:].num_elements() or 0) * tensor.dtype.size
    return total


def _of_all(step: Step, own: Any) -> Any:
    """All members' rows of tensors with one entry per row, in the order of the batch."""
    own = keras.ops.convert_to_tensor(own)

    def gathered(value: Any) -> tuple[Any, Callable[[Any], Any]]:
        present = value[: tf.cast(step.end - step.begin, tf.int32)]
        [every] = step.meter.exchange([present], lambda: [step.collectives.gather(present, "rows of a loss")])
        step.record.mark_same([every])

        def back(upstream: Any) -> Any:
            mine = step.per_weight(upstream[step.begin : step.end])
            return tf.cond(step.present, lambda: mine, lambda: tf.zeros_like(value))

        return every, back

    if not own.dtype.is_floating:
        return gathered(own)[0]
    return tf.custom_gradient(gathered)(own)
