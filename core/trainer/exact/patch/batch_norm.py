"""Synchronised batch statistics with unequal shares, and the gradient that belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from core.trainer.exact.members import step as steps
from core.trainer.exact.members.step import Step


def synchronised(original: Callable[..., Any], x: Any, axes: Any, keepdims: bool) -> Any:
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


def _total(step: Step, value: Any) -> Any:
    """The sum over members, with its gradient.

    The loss is the weighted mean of the members' losses and a member's gradients are weighted at the
    optimizer. So what comes back is the sum of all members' weighted gradients, over the own weight.
    """

    def total(own: Any) -> tuple[Any, Callable[[Any], Any]]:
        def back(upstream: Any) -> Any:
            weight = tf.cast(step.weight, upstream.dtype)
            return step.per_weight(step.sum(tf.math.multiply_no_nan(upstream, weight)))

        return step.total(own), back

    return tf.custom_gradient(total)(value)
