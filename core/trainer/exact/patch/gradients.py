"""Gradients of the global batch: weighted, packed, summed over the members before the optimizer sees them.

Summing first lets clipping, accumulation and loss scaling's check for infinities work on the gradients that
one process would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import summed_bytes
from core.trainer.exact.members.fewer_bits import as_sent, decoded, is_coded, wire_type
from core.trainer.exact.members.step import Step
from core.trainer.exact.members.step_meter import loss_scale

GRADIENTS = "gradients of {} rows"
_PACK_ELEMENTS = 1 << 20
"""A pack with this many elements is full: sending its 4 MB takes longer than a link's latency."""


def apply(original: Callable[..., Any], optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
    """An optimizer's apply, given the gradients of the global batch."""
    step = steps.current()
    if step is None or step.applying:
        return original(optimizer, grads, trainable_variables)
    step.applying = True
    try:
        own = list(grads)
        if step.meets_between_steps:
            own = [_zero_if_absent(step, grad) for grad in own]
            step.meter.record_norm(own, loss_scale(optimizer))
            return original(optimizer, own, trainable_variables)
        summed = own
        if not _is_reduced(step, own):
            summed = step.meter.exchange(own, lambda: reduce(step, own))
            step.record.mark_same(grad for grad in summed if grad is not None)
        step.meter.record_norm(summed, loss_scale(optimizer))
        step.record.sizes |= step.meter.sketches.take(summed)
        return original(optimizer, summed, trainable_variables)
    finally:
        step.applying = False


def _zero_if_absent(step: Step, grad: Any) -> Any:
    """A gradient of the own rows; zero if there are none, whatever the placeholder row gave."""
    if grad is None:
        return None
    if isinstance(grad, tf.IndexedSlices):
        values = _zero_if_absent(step, grad.values)
        return tf.IndexedSlices(values, grad.indices, dense_shape=grad.dense_shape)
    return tf.math.multiply_no_nan(grad, tf.cast(step.present, grad.dtype))


def _is_reduced(step: Step, grads: Sequence[Any]) -> bool:
    """Whether a tape has already reduced them (tape.py).

    In eager mode that is known only of gradients not modified since. Others are equal on all members by then,
    so their weighted mean changes nothing.
    """
    if not step.at_tape or not tf.executing_eagerly():
        return step.at_tape
    return all(grad is None or any(grad is each for each in step.reduced) for grad in grads)


def reduce(step: Step, grads: Sequence[Any]) -> list[Any]:
    """Sums gradients over the members. None stays None.

    Dense ones are sent in packs, a large one separately and uncopied; each while the backward pass still
    computes others, with fewer bits if configured (``Cluster.wire``). Sparse ones are gathered in full, not
    summed: Keras squares and clips them slice by slice, repeated rows separately.
    """
    if not tf.executing_eagerly():
        step.record.gradients += [grad for grad in grads if grad is not None]
    reduced: list[Any] = list(grads)
    groups = _packs(grads)
    if groups:
        kind = wire_type(step.wire, sum(_known_size(grad) for grad in grads))
        members = step.collectives.members
        flats = [_weighted(step, [grads[place] for place in places]) for places in groups]
        if all(is_coded(flat, kind) for flat in flats):
            sums = _sums_of_coded(step, flats)
        else:
            sent = [as_sent(flat, kind, members) for flat in flats]
            if any(each.dtype != flat.dtype for each, flat in zip(sent, flats, strict=True)):
                step.record.sent_bits = 8 * kind.size
            step.meter.record_sent(summed_bytes(sent, members))
            sums = step.collectives.sum(sent, GRADIENTS, step.rows)
            _mark(step, sent, sums)
        for places, flat, sum_ in zip(groups, flats, sums, strict=True):
            total = tf.cast(sum_, flat.dtype)
            sizes = [grads[place].shape.num_elements() for place in places]
            parts = tf.split(total, sizes) if len(places) > 1 else [total]
            for place, part in zip(places, parts, strict=True):
                reduced[place] = tf.reshape(part, tf.shape(grads[place]))
    for place, grad in enumerate(grads):  # Embeddings are first layers, whose gradients come last.
        if isinstance(grad, tf.IndexedSlices):
            values = tf.math.multiply_no_nan(grad.values, tf.cast(step.weight, grad.values.dtype))
            own = tf.IndexedSlices(values, grad.indices, dense_shape=grad.dense_shape)
            reduced[place] = _gathered(step, own)
            _mark(step, [own], [reduced[place]])
    return reduced


def _sums_of_coded(step: Step, flats: Sequence[Any]) -> list[Any]:
    """Sums in 8 bits would overflow, so each member decodes what all sent and adds it in rank order."""
    first, step.coded = step.coded, step.coded + len(flats)
    step.record.sent_bits = 8
    both = [step.residuals.code(flat, first + place) for place, flat in enumerate(flats)]
    coded, sent = [each for each, _ in both], [each for _, each in both]
    sizes = [each.shape.num_elements() for each in coded]
    step.meter.record_sent((step.collectives.members - 1) * sum(sizes))
    sums = []
    for joined, size, flat in zip(
        step.collectives.gather_all(coded, GRADIENTS, step.rows), sizes, flats, strict=True
    ):
        count = flat.shape.num_elements()
        total = tf.foldl(
            lambda total, each, count=count: total + decoded(each, count),
            tf.reshape(joined, [-1, size]),
            initializer=tf.zeros([count]),
        )
        total.set_shape(flat.shape)
        sums.append(total)
    _mark(step, sent, sums)
    return sums


def _mark(step: Step, sent: Sequence[Any], received: Sequence[Any]) -> None:
    """Takes marks of both for audits of sums, if the step has no other audits."""
    if step.sums_alone:
        step.meter.sent.take(sent)
        step.meter.received.take(received)


def _weighted(step: Step, tensors: list[Any]) -> Any:
    flat = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)
    # multiply_no_nan: a member without rows adds nothing, whatever its placeholder row gave.
    return tf.math.multiply_no_nan(flat, tf.cast(step.weight, flat.dtype))


def _packs(grads: Sequence[Any]) -> list[list[int]]:
    """Places of dense gradients that are sent together. The last pack is ready first: its layers come
    last."""
    full: list[list[int]] = []
    begun: dict[Any, list[int]] = {}
    for place in reversed(range(len(grads))):
        grad = grads[place]
        if grad is None or isinstance(grad, tf.IndexedSlices):
            continue
        if not grad.shape.is_fully_defined() or grad.shape.num_elements() >= _PACK_ELEMENTS:
            full.append([place])
            continue
        pack = begun.setdefault(grad.dtype, [])
        pack.append(place)
        if sum(grads[each].shape.num_elements() for each in pack) >= _PACK_ELEMENTS:
            full.append(begun.pop(grad.dtype))
    return [*full, *begun.values()][::-1]


def _known_size(grad: Any) -> int:
    """Elements of a dense gradient of known shape; the same on every member."""
    dense = grad is not None and not isinstance(grad, tf.IndexedSlices)
    return (grad.shape.num_elements() or 0) if dense else 0


def _gathered(step: Step, grad: Any) -> Any:
    """All members' weighted slices in rank order, which is the order of the rows in the global batch.

    Slices with the same indices on all members, such as text positions, are summed, as one process has them.
    """
    if not tf.executing_eagerly() and not step.record.may_differ(grad.indices):
        step.meter.record_sent(summed_bytes([grad.values], step.collectives.members))
        total = step.collectives.sum([grad.values], "gradients of a table")[0]
        return tf.IndexedSlices(total, grad.indices, dense_shape=grad.dense_shape)
    values = step.collectives.gather(grad.values, "gradients of rows of a table")
    indices = step.collectives.gather(grad.indices, "which rows of a table")
    # Every member sends as much as the longest one; this counts the mean, the same if shares are equal.
    gathered = sum(tf.size(each, tf.int64) * each.dtype.size for each in (values, indices))
    members = step.collectives.members
    step.meter.record_sent((members - 1) * gathered / members)
    return tf.IndexedSlices(values, indices, dense_shape=grad.dense_shape)
