"""Faults planted in the engine: an audit finds each, and the members continue without shares.

Most begin at the 11th step, so that the check of the first batch does not see them. In one plain process
there is nowhere to plant them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from core.trainer.exact.keras.local_state import LocalState
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.exchange_ops import ExchangeCollectives
from core.trainer.exact.members.step import Step
from core.trainer.exact.patch import gradients, random_numbers
from tests.exactness.scenarios.rarely import as_quick_steps
from tests.exactness.scenarios.registry import (
    BATCH,
    FEATURES,
    ROWS,
    Outcome,
    of_its_own_test,
    scenario,
    table,
)

_done: list[Any] = []
"""The variable that counts the trained model's steps."""


def _late(condition: Any = True) -> Any:
    """Within a step: whether `condition` is true and the fault has begun."""
    return condition & (tf.convert_to_tensor(_done[-1]) >= 10)


def _trained(owner: Any, name: str, fault: Callable[..., Any], *between: Any, **compiled: Any) -> Outcome:
    """A small model, trained while `fault`, which receives the original first, replaces it."""
    x, y = table()
    x = (10 * (x + 1)).astype("int32") if any(isinstance(each, layers.Embedding) for each in between) else x
    inner = [layers.Dense(8, "tanh")] * (x.dtype == "float32") + [*between, layers.Dense(1)]
    model = keras.Sequential([keras.Input((FEATURES,)), *inner])
    return _fitted_with(owner, name, fault, model, x, y, **compiled)


def _fitted_with(
    owner: Any, name: str, fault: Callable[..., Any], model: Any, x: Any, y: Any, **compiled: Any
) -> Outcome:
    original = getattr(owner, name)
    model.compile(keras.optimizers.SGD(0.05), **{"loss": "mse", **compiled})
    _done[:] = [model.optimizer.iterations.value]
    with mock.patch.object(owner, name, lambda *args, **kwargs: fault(original, *args, **kwargs)):
        model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model])


@scenario(once=True, core=True, told="an audit found")
def planted_a_row_left_out(folder: Path) -> Outcome:
    def fault(original: Any, rows: Any, shares: Any, rank: int) -> Any:
        begin, end = original(rows, shares, rank)
        return tf.where(_late(begin > 0), begin + 1, begin), end

    return _trained(steps, "bounds", fault)


@scenario(once=True, told="an audit found")
def planted_a_row_doubled(folder: Path) -> Outcome:
    def fault(original: Any, rows: Any, shares: Any, rank: int) -> Any:
        begin, end = original(rows, shares, rank)
        return tf.where(_late(begin > 0), begin - 1, begin), end

    return _trained(steps, "bounds", fault)


@scenario(once=True, told="an audit found")
def planted_other_rows(folder: Path) -> Outcome:
    def fault(original: Any, data: Any, begin: Any, end: Any) -> Any:
        return original(
            data, tf.where(_late(begin > 0), begin - 1, begin), tf.where(_late(begin > 0), end - 1, end)
        )

    return _trained(steps, "take_rows", fault)


@scenario(once=True, told="an audit found")
def planted_equal_weights(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, tensors: Any) -> Any:
        step.weight = tf.where(_late(step.weight < 1.0), 0.5 * tf.ones_like(step.weight), step.weight)
        return original(step, tensors)

    return _trained(gradients, "_weighted", fault)


@scenario(once=True, told="an audit found")
def planted_a_weight_off_by_a_thousandth(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, tensors: Any) -> Any:
        flat = original(step, tensors)
        return tf.where(_late(step.begin > 0), 1.001 * flat, flat)

    return _trained(gradients, "_weighted", fault)


@scenario(once=True, core=True, told="an audit found")
def planted_a_sum_that_is_skipped(folder: Path) -> Outcome:
    def fault(original: Any, collectives: Any, *args: Any, **kwargs: Any) -> Any:
        totals = original(collectives, *args, **kwargs)
        step = steps.current()
        if step is None or "gradients" not in str(args) + str(kwargs):
            return totals
        return [tf.where(_shared(step), 0.5 * total, total) for total in totals]

    return _trained(ExchangeCollectives, "sum", fault)


@scenario(once=True, told="an audit found")
def planted_gradients_in_sixteen_bits(folder: Path) -> Outcome:
    def fault(original: Any, flat: Any, kind: Any, members: int) -> Any:
        step = steps.current()
        assert step is not None
        rounded = tf.cast(tf.cast(flat, tf.bfloat16), flat.dtype)
        return tf.where((step.end > step.begin) & _shared(step), rounded, flat)

    return _trained(gradients, "as_sent", fault)


@scenario(once=True, told="an audit found")
def planted_a_divisor_of_the_own_rows(folder: Path) -> Outcome:
    """A loss over the unmasked entries."""

    class Masking(layers.Layer):
        def call(self, x: Any) -> Any:
            return x

        def compute_mask(self, x: Any, previous: Any = None) -> Any:
            return x[:, 0] > -0.4

    def fault(original: Any, step: Step, value: Any) -> Any:
        return tf.where(_late(), value, original(step, value))

    return _trained(Step, "total", fault, Masking())


@scenario(once=True, told="an audit found")
def planted_sums_taken_for_means(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, value: Any) -> Any:
        return tf.where(_late(), value, original(step, value))

    return _trained(Step, "per_weight", fault, loss=keras.losses.MeanSquaredError(reduction="sum"))


@scenario(once=True, told="an audit found")
def planted_dropout_of_other_rows(folder: Path) -> Outcome:
    def fault(original: Any, shape: Any) -> bool:
        return False

    return _trained(random_numbers, "_begins_with_rows", fault, layers.Dropout(0.4, seed=3))


def _shared(step: Step) -> Any:
    return _late(step.end - step.begin < step.rows)


@scenario(once=True, told="an audit found")
def planted_the_last_row_left_out(folder: Path) -> Outcome:
    def fault(original: Any, rows: Any, shares: Any, rank: int) -> Any:
        begin, end = original(rows, shares, rank)
        return begin, tf.where(_late(end < rows), end - 1, end)

    return _trained(steps, "bounds", fault)


@scenario(once=True, told="an audit found")
def planted_targets_of_the_rows_before(folder: Path) -> Outcome:
    def fault(original: Any, data: Any, begin: Any, end: Any) -> Any:
        x, y = original(data, begin, end)
        return x, tf.where(_late(begin > 0), tf.roll(y, 1, 0), y)

    return _trained(steps, "take_rows", fault)


@scenario(once=True, told="an audit found")
def planted_a_member_that_counts_twice(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, tensors: Any) -> Any:
        flat = original(step, tensors)
        return tf.where(_late(step.begin > 0), 2.0 * flat, flat)

    return _trained(gradients, "_weighted", fault)


@scenario(once=True, told="an audit found")
def planted_a_gradient_left_out(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, grads: Any) -> Any:
        first, *others = original(step, grads)
        return [tf.where(_shared(step), tf.zeros_like(first), first), *others]

    return _trained(gradients, "reduce", fault)


@scenario(once=True, told="an audit found")
def planted_gradients_in_half_precision(folder: Path) -> Outcome:
    def fault(original: Any, flat: Any, kind: Any, members: int) -> Any:
        step = steps.current()
        assert step is not None
        return tf.where(_shared(step), tf.cast(tf.cast(flat, tf.float16), flat.dtype), flat)

    return _trained(gradients, "as_sent", fault)


@scenario(once=True, told="an audit found")
def planted_sums_off_by_a_hundredth(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, value: Any) -> Any:
        found = original(step, value)
        return tf.where(_late(step.begin > 0), 1.01 * found, found)

    return _trained(Step, "per_weight", fault, loss=keras.losses.MeanSquaredError(reduction="sum"))


@scenario(once=True, told="an audit found")
def planted_slices_of_a_table_doubled(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, grad: Any) -> Any:
        found = original(step, grad)
        values = tf.where(_shared(step), 2.0 * found.values, found.values)
        return tf.IndexedSlices(values, found.indices, found.dense_shape)

    return _trained(gradients, "_gathered", fault, layers.Embedding(21, 4), layers.Flatten())


@of_its_own_test
def planted_slices_of_a_table_doubled_eagerly(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, grad: Any) -> Any:
        found = original(step, grad)
        values = tf.where(_late(), 2.0 * found.values, found.values)
        return tf.IndexedSlices(values, found.indices, found.dense_shape)

    inner = (layers.Embedding(21, 4), layers.Flatten())
    return _trained(gradients, "_gathered", fault, *inner, run_eagerly=True)


@of_its_own_test
def planted_numbers_in_eight_bits_that_are_halved(folder: Path) -> Outcome:
    def fault(original: Any, coded: Any, count: int) -> Any:
        numbers = original(coded, count)
        return tf.where(_late(), 0.5 * numbers, numbers)

    return _trained(gradients, "decoded", fault)


@of_its_own_test
def planted_a_sum_that_is_skipped_eagerly(folder: Path) -> Outcome:
    def fault(original: Any, collectives: Any, *args: Any, **kwargs: Any) -> Any:
        totals = original(collectives, *args, **kwargs)
        if "gradients" not in str(args) + str(kwargs):
            return totals
        return [tf.where(_late(), 0.5 * total, total) for total in totals]

    return _trained(ExchangeCollectives, "sum", fault, run_eagerly=True)


@scenario(once=True, told="an audit found")
def planted_slices_of_other_places(folder: Path) -> Outcome:
    def fault(original: Any, step: Step, grad: Any) -> Any:
        found = original(step, grad)
        indices = tf.where(_shared(step), tf.roll(found.indices, 1, 0), found.indices)
        return tf.IndexedSlices(found.values, indices, found.dense_shape)

    return _trained(gradients, "_gathered", fault, layers.Embedding(21, 4), layers.Flatten())


@scenario(once=True, told="an audit found")
def planted_noise_of_other_rows(folder: Path) -> Outcome:
    def fault(original: Any, shape: Any) -> bool:
        return False

    return _trained(random_numbers, "_begins_with_rows", fault, layers.GaussianNoise(0.2, seed=4))


@scenario(once=True, exact=False, told="metric", differs=True)
def planted_metrics_of_one_member(folder: Path) -> Outcome:
    def fault(original: Any, state: Any, before: Any, extra: Any, count: Any) -> Any:
        own = state.snapshot()
        sums = original(state, before, extra, count)
        for variable, value in zip(state.variables, own, strict=True):
            step = variable.shape.rank == 0
            if step and variable.dtype == tf.float32:
                variable.assign(0.5 * (value + variable))
        return sums

    return _trained(LocalState, "meet", fault, metrics=["mae"])


@scenario(once=True, core=True, told="an audit found")
def planted_a_kernel_off_by_a_ten_thousandth(folder: Path) -> Outcome:
    """Each number of the kernel's gradient adds up 64 x 64 places in 64 rows."""

    def fault(original: Any, step: Step, grads: Any) -> Any:
        return [
            tf.where(_shared(step), 1.0001 * each, each) if each.shape.rank == 4 else each
            for each in original(step, grads)
        ]

    images = np.random.RandomState(8).normal(size=(ROWS, 64, 64, 1)).astype("float32")
    model = keras.Sequential(
        [
            keras.Input((64, 64, 1)),
            layers.Conv2D(3, 3, padding="same", activation="tanh"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(1),
        ]
    )
    return _fitted_with(gradients, "reduce", fault, model, images, 10.0 * images.mean(axis=(1, 2)))


@scenario(once=True, core=True, told="an audit found")
def planted_a_small_gradient_off_by_a_ten_thousandth(folder: Path) -> Outcome:
    """The other gradients are ten thousand times as large, and that of their bias cancels out."""

    def fault(original: Any, step: Step, grads: Any) -> Any:
        return [
            tf.where(_shared(step), 1.0001 * each, each) if each.shape == (4, 1) else each
            for each in original(step, grads)
        ]

    x, y = table()
    given = keras.Input((FEATURES,))
    large, small = layers.Dense(1)(given), layers.Dense(1)(layers.Dense(4, "tanh")(given))
    model = keras.Model(given, [large, small])
    given_y = [10.0 * (y - y.mean()), y]
    weights = [1.0, 1e-3]
    with as_quick_steps():
        return _fitted_with(
            gradients, "reduce", fault, model, x, given_y, loss=["mse", "mse"], loss_weights=weights
        )
