"""Gradients of the global batch: weighted, packed, summed over the members before the optimizer sees them.

Before it sees them, so that clipping, accumulation and the finite check of loss scaling work on what one
process would have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact import step as steps
from core.trainer.exact.collectives import summed_bytes
from core.trainer.exact.gauge import loss_scale
from core.trainer.exact.narrowing import narrowed, wire_type
from core.trainer.exact.step import Step

_PACKED_ELEMENTS = 65_536
"""Tensors up to here cost more to send each than to pack."""


def apply(original: Callable[..., Any], optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
    """An optimizer's apply, given the gradients of the global batch."""
    step = steps.current()
    if step is None or step.applying:
        return original(optimizer, grads, trainable_variables)
    step.applying = True
    try:
        own = list(grads)
        summed = step.gauge.exchange(own, lambda: reduce(step, own))
        step.gauge.weigh(summed, loss_scale(optimizer))
        return original(optimizer, summed, trainable_variables)
    finally:
        step.applying = False


def reduce(step: Step, grads: Sequence[Any]) -> list[Any]:
    """Sums gradients over the members. None stays None.

    Small dense ones go packed in one all-reduce, the last; a large one goes on its own, uncopied, and leaves
    while the backward pass still works on others. All may travel in fewer bits (``Cluster.wire``). Sparse
    ones are gathered in full, not summed: Keras squares and clips them slice by slice, repeated rows apart.
    """
    reduced: list[Any] = list(grads)
    packs: dict[Any, list[int]] = defaultdict(list)
    large: list[list[int]] = []
    for place, grad in enumerate(grads):
        if isinstance(grad, tf.IndexedSlices):
            reduced[place] = _gathered(step, grad)
        elif grad is not None and _is_small(grad):
            packs[grad.dtype].append(place)
        elif grad is not None:
            large.append([place])
    groups = [*packs.values(), *large]
    if groups:
        kind = wire_type(step.wire, sum(_known_size(grad) for grad in grads))
        members = step.collectives.members
        flats = [_weighted(step, [grads[place] for place in places]) for places in groups]
        sent = [narrowed(flat, kind, members) for flat in flats]
        step.gauge.sends(summed_bytes(sent, members))
        for places, flat, sum_ in zip(groups, flats, step.collectives.sum(sent), strict=True):
            total = tf.cast(sum_, flat.dtype)
            parts = tf.split(total, [_size(grads[place]) for place in places]) if len(places) > 1 else [total]
            for place, part in zip(places, parts, strict=True):
                reduced[place] = tf.reshape(part, tf.shape(grads[place]))
    return reduced


def _weighted(step: Step, tensors: list[Any]) -> Any:
    flat = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)
    # multiply_no_nan: a member without rows adds nothing, whatever its placeholder row gave.
    return tf.math.multiply_no_nan(flat, tf.cast(step.weight, flat.dtype))


def _is_small(tensor: Any) -> bool:
    size = tensor.shape.num_elements()
    return size is not None and size <= _PACKED_ELEMENTS


def _known_size(grad: Any) -> int:
    """Elements of a dense gradient whose shape is known; the same on every member."""
    dense = grad is not None and not isinstance(grad, tf.IndexedSlices)
    return (grad.shape.num_elements() or 0) if dense else 0


def _size(tensor: Any) -> Any:
    return tensor.shape.num_elements() if tensor.shape.is_fully_defined() else tf.size(tensor)


def _gathered(step: Step, grad: Any) -> Any:
    """All members' slices in rank order, which is the order of the rows in the global batch."""
    values = tf.math.multiply_no_nan(grad.values, tf.cast(step.weight, grad.values.dtype))
    values, indices = step.collectives.gather(values), step.collectives.gather(grad.indices)
    # What travels is as long as the longest member's: this is the mean, which is the same for equal shares.
    gathered = sum(tf.size(each, tf.int64) * each.dtype.size for each in (values, indices))
    members = step.collectives.members
    step.gauge.sends((members - 1) * gathered / members)
    return tf.IndexedSlices(values, indices, dense_shape=grad.dense_shape)
