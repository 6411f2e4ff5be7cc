"""Random numbers inside a step: each member gets those that one process would draw for its rows.

Numbers with a value for each row are drawn for all rows of the batch, by the same generator on every member,
which uses those of its own rows. Those without rows, such as a matrix of noise for weights, are the same on
all members anyway. Numbers drawn in other ways differ between members: as good, but not one process's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.ops import random_ops, stateless_random_ops

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.step import Step

_SEED_STRIDE = 0x3C6EF372
"""Far from the small increments by which Keras advances a seed's state."""
_BY_SHAPE = (
    (tf.random, "stateless_normal"),
    (tf.random, "stateless_truncated_normal"),
    (tf.random, "stateless_uniform"),
    (stateless_random_ops, "stateless_random_uniform"),  # used by Keras' dropout
    (tf.random, "normal"),
    (tf.random, "truncated_normal"),
    (tf.random, "uniform"),
    (random_ops, "random_uniform"),  # used by tf.nn.dropout
)
_BY_GENERATOR = ("normal", "truncated_normal", "uniform", "uniform_full_int")
"""Methods of ``tf.random.Generator``."""
_BY_SEED = (
    (tf.random, "stateless_binomial"),
    (tf.random, "stateless_categorical"),
    (tf.random, "stateless_gamma"),
    (tf.random, "stateless_poisson"),
    (tf.random.experimental, "stateless_shuffle"),
    private.SHUFFLED,
    private.DISTORTED,
    (tf.random.Generator, "binomial"),
    (tf.random, "categorical"),
    (tf.random, "gamma"),
    (tf.random, "poisson"),
    (tf.random, "shuffle"),
)


def replace_drawing() -> None:
    for owner, name in _BY_SHAPE:
        private.replace(owner, name, by_shape)
    for name in _BY_GENERATOR:
        private.replace(tf.random.Generator, name, by_generator)
    for owner, name in _BY_SEED:
        private.replace(owner, name, by_seed)
    private.replace(keras.layers.RandAugment, "transform_images", by_own_histogram)


def by_own_histogram(original: Callable[..., Any], layer: Any, *args: Any, **kwargs: Any) -> Any:
    """``RandAugment``: its ``Equalization`` uses one histogram of the own rows. Reported as a draw."""
    step = steps.current()
    if step is not None:
        step.record.own_draws.add("RandAugment")
    return original(layer, *args, **kwargs)


def by_shape(original: Callable[..., Any], shape: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps a function that draws numbers of a given shape."""
    step = steps.current()
    if step is None:
        return original(shape, *args, **kwargs)
    if tf.executing_eagerly():  # A size may equal the number of own rows by chance.
        step.record.own_draws.add("run_eagerly")
        return original(shape, *args, **_of_rank(step, kwargs))
    shape = tf.convert_to_tensor(shape, tf.int32)
    if not _begins_with_rows(shape):
        return original(shape, *args, **kwargs)
    own = tf.cast(tf.maximum(step.end - step.begin, 1), tf.int32)
    # A first axis of heads within rows, for example, is the same multiple of the rows on every member.
    times = tf.where(shape[0] % own == 0, shape[0] // own, 0)
    length = tf.where(times > 0, times * tf.cast(step.rows, tf.int32), shape[0])
    begin = tf.where(step.present, times * tf.cast(step.begin, tf.int32), 0)
    every = original(tf.concat([[length], shape[1:]], axis=0), *args, **kwargs)
    return every[begin : begin + shape[0]]


def by_generator(original: Callable[..., Any], generator: Any, shape: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps a method that draws numbers of a given shape, from a state that all members have."""
    return by_shape(functools.partial(original, generator), shape, *args, **kwargs)


def by_seed(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Wraps a function that draws in another way: each member draws its own, which is reported."""
    step = steps.current()
    if step is None:
        return original(*args, **kwargs)
    step.record.own_draws.add(original.__name__.removeprefix("stateless_").removeprefix("random_"))
    return original(*args, **_of_rank(step, kwargs))


def _of_rank(step: Step, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments with a seed of this member's own; the chief draws what one process would."""
    seed = kwargs.get("seed")
    if seed is None or tuple(getattr(seed, "shape", ())) != (2,):
        return kwargs
    offset = tf.constant([(step.collectives.rank * _SEED_STRIDE) % 2**31, 0], tf.int64)
    own = seed + tf.cast(offset, seed.dtype)
    step.record.mark_own([own])
    return {**kwargs, "seed": own}


def _begins_with_rows(shape: Any) -> bool:
    """Whether the first axis has a size that only the batch determines. Others are the model's own."""
    if shape.shape.rank != 1 or shape.shape[0] == 0:
        return False
    known = tf.get_static_value(shape, partial=True)
    return known is None or known[0] is None
