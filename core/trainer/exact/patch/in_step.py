"""Keras' computations inside a step: losses, metrics and batch statistics of all rows.

Each function takes Keras' original first, for use outside a step, and has Keras' arguments otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from keras import backend, ops
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.step import Step
from core.trainer.exact.members.step_meter import ONCE

_ENGINE = __name__.removesuffix("patch.in_step")
"""Name prefix of the engine's own modules."""
_KERAS = "keras.src."


def print_once(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Replaces ``tf.print``."""
    step = steps.current()
    if step is None or tf.executing_eagerly():
        return original(*args, **kwargs)

    def write() -> Any:
        with tf.control_dependencies([original(*args, **kwargs)]):
            return tf.constant(0)

    with tf.device("CPU:0"):
        # Read outside of the condition: TensorFlow does not order prints whose conditions read variables.
        with step.weight.graph.as_default():
            repeats = step.meter.repeats.read_value()
        return tf.cond(repeats, lambda: tf.constant(0), write, name=ONCE).op


# --- losses


def reduce_values(
    original: Callable[..., Any],
    values: Any,
    sample_weight: Any = None,
    reduction: str | None = "sum_over_batch_size",
) -> Any:
    """One loss from weighted values: this member's estimate of the global loss (see step.py)."""
    step = steps.current()
    if step is None or tuple(values.shape) == (0,):
        return original(values, sample_weight, reduction)
    loss = _estimate(step, original, values, sample_weight, reduction)
    if tuple(loss.shape) != ():
        return loss
    # Recorded separately: beside a larger loss, an error in it could go unnoticed.
    return step.per_weight(loss) if step.is_sum(step.record.add_scalar("loss", loss)) else loss


def _estimate(
    step: Step, original: Callable[..., Any], values: Any, sample_weight: Any, reduction: str | None
) -> Any:
    """This member's estimate of the loss. A custom loss counts as a mean unless known otherwise."""
    if tuple(values.shape) != ():
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

    Keras' weight is total/valid for valid entries; here total is the number of own entries (the mean divides
    by them), valid counts all members' valid entries, and the ratio is divided by the member's weight.
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
    """An additional loss: a sum if it has a value per row. Otherwise a mean, unless known to be a sum."""
    step = steps.current()
    total = original(model, loss)
    if step is None:
        return total
    by_row = len(loss.shape) > 0 and loss.shape[0] is None
    return step.per_weight(total) if by_row or step.is_sum(step.record.add_scalar("loss", total)) else total


# --- metrics


def update_mean(original: Callable[..., Any], metric: Any, values: Any, sample_weight: Any = None) -> Any:
    """Mean's or Sum's update_state; weights a single number by the member's part of the batch."""
    step, outer = steps.current(), steps.outer()
    if outer is not None and len(getattr(values, "shape", ())) == 0:
        sample_weight = outer.weight if sample_weight is None else sample_weight * outer.weight
    elif step is not None and len(getattr(values, "shape", ())) == 0:
        if step.is_sum(step.record.add_scalar("metric", values, metric.name)):
            values = step.per_weight(values)
        if sample_weight is None:
            sample_weight = step.weight
    elif step is not None and step.own_step:  # Recorded as an estimate of the sum over all rows.
        step.record.add_scalar("metric", step.per_weight(tf.reduce_sum(values)), metric.name)
    return original(metric, values, sample_weight)


# --- batch statistics


def moments(original: Callable[..., Any], x: Any, axes: Any, keepdims: bool) -> Any:
    """Mean and variance over the global batch, by Keras' formula E[x^2] - E[x]^2, in one all-reduce."""
    step = steps.current()
    if step is None:
        return original(x, axes, keepdims)
    sums = tf.reduce_sum(x, axis=axes, keepdims=True)
    squares = tf.reduce_sum(tf.square(x), axis=axes, keepdims=True)
    counts = tf.reduce_sum(tf.ones_like(x), axis=axes, keepdims=True)
    totals = _total(step, tf.stack([sums, squares, counts]))
    mean = tf.math.divide_no_nan(totals[0], totals[2])
    variance = tf.maximum(tf.math.divide_no_nan(totals[1], totals[2]) - tf.square(mean), 0.0)
    if not keepdims:
        mean, variance = tf.squeeze(mean, axes), tf.squeeze(variance, axes)
    return mean, variance


def batch_moments(original: Callable[..., Any], layer: Any, inputs: Any, mask: Any = None) -> Any:
    """Batch statistics for ``BatchNormalization``: mean and variance of all members' rows.

    Inside a loop of the graph, where members cannot meet, they cover only the own rows. The moving statistics
    written from them reveal this before the first step, and every member computes whole batches.
    """
    step = steps.current()
    if step is None:
        return original(layer, inputs, mask)
    axes = [axis for axis in range(len(inputs.shape)) if axis != layer.axis % len(inputs.shape)]
    is_inside = not tf.executing_eagerly() and inputs.graph is not getattr(step.rows, "graph", None)
    if is_inside:
        found = ops.moments(inputs, axes) if mask is None else original(layer, inputs, mask)
    elif mask is None and layer.synchronized:
        found = original(layer, inputs, mask)
    else:
        found = _moments_of_all(step, inputs, mask, axes)
    step.record.moments += list(found)
    return found


def _moments_of_all(step: Step, inputs: Any, mask: Any, axes: list[int]) -> Any:
    """Moments as Keras computes them in one batch. Takes one meeting, and one more for the gradient.

    Members exchange counts, and sums and squares about their own means, which add up without loss far from
    zero (Chan et al. 1979, "Updating formulae and a pairwise algorithm for computing sample variances"). The
    variance's gradient is that of the squares; if nothing is masked, the second derivative treats the mean as
    constant, as in Keras.
    """
    valid, least = None, 0.0
    if mask is not None:
        valid = tf.broadcast_to(tf.cast(tf.expand_dims(mask, -1), tf.bool), tf.shape(inputs))
        least = backend.epsilon()

    def summed(values: Any) -> Any:
        counted = values if valid is None else tf.where(valid, values, tf.zeros_like(values))
        return tf.reduce_sum(counted, axes, keepdims=True)

    total = summed(inputs)
    if valid is None:
        count = tf.fill(tf.shape(total), tf.cast(tf.size(inputs) // tf.size(total), inputs.dtype))
    else:
        count = summed(tf.ones_like(inputs))
    center = tf.math.divide_no_nan(total, count)
    away = inputs - center
    own = tf.stop_gradient(tf.stack([count, center, summed(away), summed(tf.square(away))]))
    counts, centers, sums, squares = tf.unstack(step.each(own), axis=1)
    entries = tf.reduce_sum(counts, 0)
    middle = tf.math.divide_no_nan(tf.reduce_sum(counts * centers, 0), entries)
    beyond = tf.reduce_sum(counts * (centers - middle) + sums, 0)
    mean = tf.math.divide_no_nan(middle * entries + beyond, entries + least)
    off = centers - mean
    variance = tf.math.divide_no_nan(
        tf.reduce_sum(squares + 2 * off * sums + counts * tf.square(off), 0), entries + least
    )

    def mean_of(own: Any) -> Any:
        """The mean, not treated as constant."""

        def known(total: Any) -> tuple[Any, Callable[[Any], Any]]:
            return tf.identity(mean), lambda upstream: _weighted(step, upstream) / (entries + least)

        return tf.custom_gradient(known)(summed(own))

    def moments(own: Any) -> tuple[Any, Callable[..., Any]]:
        def gradient(*upstream: Any) -> Any:
            both = tf.math.divide_no_nan(_weighted(step, tf.stack(upstream)), entries + least)
            by_mean, by_variance = tf.unstack(both)
            if valid is None:
                return by_mean + 2 * (own - mean) * by_variance
            gradient = by_mean + 2 * (own - mean_of(own)) * by_variance
            return tf.where(valid, gradient, tf.zeros_like(gradient))

        return (mean, variance), gradient

    found = tf.custom_gradient(moments)(inputs)
    step.record.mark_same(found)
    return tuple(tf.squeeze(each, axes) for each in found)


def _total(step: Step, value: Any) -> Any:
    """The sum over members, differentiable twice.

    The loss is the weighted mean of the members' losses, and a member's gradients are weighted only at the
    optimizer. So the gradient is the sum of all members' weighted gradients, divided by the own weight.
    """
    if step.meets_between_steps:
        return step.estimate(value)

    def total(own: Any) -> tuple[Any, Callable[[Any], Any]]:
        return step.total(own), lambda upstream: _weighted(step, upstream)

    found = tf.custom_gradient(total)(value)
    step.record.mark_same([found])
    return found


def _weighted(step: Step, upstream: Any) -> Any:
    def weighted(own: Any) -> tuple[Any, Callable[[Any], Any]]:
        weight = tf.cast(step.weight, own.dtype)
        summed = step.per_weight(step.sum(tf.math.multiply_no_nan(own, weight)))
        return summed, lambda upstream: _total(step, upstream)

    return tf.custom_gradient(weighted)(upstream)


# --- functions of the script's own


def call_function(original: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
    """A ``tf.function``'s call. In a step the function is inlined: a separate trace would outlive the step's.

    Keras' own functions are not: they are made for each call, and grouped convolutions need XLA on processors
    for which TensorFlow does not use oneDNN.
    """
    python, step = function.python_function, steps.current()
    if step is None or getattr(python, "__module__", "").startswith((_ENGINE, _KERAS)):
        return original(function, *args, **kwargs)
    if private.is_compiled(function):
        step.record.not_compiled.add(getattr(python, "__name__", "a function"))
    if not tf.executing_eagerly():
        python = api.tf_convert(python, ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED))
    return python(*args, **kwargs)
