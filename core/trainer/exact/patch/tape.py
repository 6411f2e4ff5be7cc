"""Gradients from a tape: in a step of the script's own, they cover all rows.

Whatever such a step does with gradients before applying them (clip, take signs, assign by hand, step aside
and back), it does with the gradients that one process would have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from core.trainer.exact.members import step as steps
from core.trainer.exact.members.step import Step
from core.trainer.exact.patch.gradients import reduce


def gradient(
    original: Callable[..., Any], tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any
) -> Any:
    """``GradientTape.gradient``."""
    step = steps.current()
    found = original(tape, target, sources, *args, **kwargs)
    if step is None or step.applying:
        return found
    every, grads = tf.nest.flatten(sources), tf.nest.flatten(found)
    places = [place for place, source in enumerate(every) if _is_weight(source)]
    if not places:
        return found
    targets = [leaf for leaf in tf.nest.flatten(target) if getattr(leaf, "shape", None) is not None]
    numbers = [step.record.add_scalar("gradient", leaf) for leaf in targets if _is_one(leaf)]
    for leaf in targets:
        if not _is_one(leaf):  # The tape adds them up; in a step of the script's own that is known.
            total = tf.reduce_sum(leaf)
            step.record.add_scalar("gradient", step.per_weight(total) if step.at_tape else total)
    if not step.at_tape:
        return found
    own = [grads[place] for place in places]
    if not numbers or all(step.is_sum(number) for number in numbers):
        own = [_scaled(step, grad) for grad in own]
    totals = _of_all(step, own)
    step.record.sizes |= step.meter.sketches.take(totals)
    for place, grad in zip(places, totals, strict=True):
        grads[place] = grad
    return tf.nest.pack_sequence_as(sources, grads)


def jacobian(original: Callable[..., Any], tape: Any, *args: Any, **kwargs: Any) -> Any:
    """``GradientTape.jacobian``, which computes row by row in a loop, where members cannot meet."""
    step = steps.current()
    if step is None:
        return original(tape, *args, **kwargs)
    applying, step.applying = step.applying, True
    try:
        return original(tape, *args, **kwargs)
    finally:
        step.applying = applying


def _of_all(step: Step, own: list[Any]) -> list[Any]:
    """The members' gradients, summed by weight; differentiable if another tape records."""
    dense = [place for place, grad in enumerate(own) if isinstance(grad, tf.Tensor)]

    def summed(*tensors: Any) -> list[Any]:
        given = list(own)
        for place, tensor in zip(dense, tensors, strict=True):
            given[place] = tensor
        return step.meter.exchange(given, lambda: reduce(step, given))

    if not record.could_possibly_record() or len(dense) < len(own):
        totals = summed(*(own[place] for place in dense))
    else:

        def second(*tensors: Any) -> tuple[Any, Callable[..., Any]]:
            def back(*upstream: Any) -> Any:
                weighted = [
                    tf.math.multiply_no_nan(each, tf.cast(step.weight, each.dtype)) for each in upstream
                ]
                return step.meter.exchange(
                    weighted, lambda: step.collectives.sum(weighted, "gradients of {} rows", step.rows)
                )

            return summed(*tensors), back

        totals = list(tf.custom_gradient(second)(*own))
    step.mark_reduced(totals)
    return totals


def _scaled(step: Step, grad: Any) -> Any:
    """Rescales the gradient of a sum over the own rows to that of an estimate of the sum over all."""
    if grad is None:
        return None
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(step.per_weight(grad.values), grad.indices, grad.dense_shape)
    return step.per_weight(grad)


def _is_weight(source: Any) -> bool:
    variable = getattr(source, "value", source)
    return isinstance(variable, tf.Variable) and variable.dtype.is_floating


def _is_one(target: Any) -> bool:
    """Whether the target is a single number; the tape adds up several."""
    return all(size == 1 for size in target.shape)
