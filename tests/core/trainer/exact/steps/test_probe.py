"""What may go wrong while a step is tried, without ending or slowing a sound run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


def verdict(tf: Any, body: Any, *batches: Any, rank: int = 0) -> str:
    """One of two members' judgement of a step's gradient on these batches; the other finds the same."""
    from core.trainer.exact.members.trace_record import TraceRecord
    from core.trainer.exact.steps.probe import gradients_judged
    from core.trainer.exact.steps.result import Traced

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any, shares: Any) -> Any:
        return body(x)

    traced_step = step.get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([2], tf.int64))
    record = TraceRecord(gradients=[traced_step.graph.outputs[0]])
    collectives = SimpleNamespace(present=(0, 1), met=(0, 1), gather_numbers=lambda own, what: [own, own])
    meter = SimpleNamespace(repeats=tf.Variable(False))
    engine: Any = SimpleNamespace(members=2, rank=rank, collectives=collectives, meter=meter)
    traced = Traced(traced_step, None, record=record)  # type: ignore[arg-type]
    return gradients_judged(engine, traced, batches, [], coarse=False)


def positive(tf: Any, x: Any) -> Any:
    """Refuses zeros, as a script may where it divides."""
    with tf.control_dependencies([tf.debugging.assert_positive(x)]):
        return tf.reduce_mean(x, keepdims=True)


def test_a_later_case_that_breaks_is_unknown_and_if_parts_of_the_first_break_they_are_not_rows(
    tf: Any,
) -> None:
    def body(x: Any) -> Any:
        return positive(tf, x)

    for rank in (0, 1):
        assert verdict(tf, body, tf.ones([4]), tf.zeros([4]), rank=rank) == "means"
    assert verdict(tf, body, tf.zeros([4]), tf.ones([4]), rank=1) == "whole", "a part breaks"
    assert verdict(tf, body, tf.zeros([4]), tf.ones([4])) == "unseen", "the whole batch breaks"


def test_random_states_are_restored_whatever_the_kind_of_numpys_generator(tf: Any) -> None:
    def body(x: Any) -> Any:
        drawn = tf.numpy_function(np.random.uniform, [], tf.float64)
        return tf.reduce_mean(x, keepdims=True) + 0.0 * tf.cast(drawn, tf.float32)

    before = np.random.get_bit_generator()  # type: ignore[attr-defined]
    np.random.set_bit_generator(np.random.PCG64(1))  # type: ignore[attr-defined]
    try:
        expected = np.random.RandomState(np.random.PCG64(1)).uniform()
        assert verdict(tf, body, tf.ones([4])) == "means"
        assert np.random.uniform() == expected
    finally:
        np.random.set_bit_generator(before)  # type: ignore[attr-defined]


def test_a_weight_of_more_entries_than_float32_counts_is_perturbed(tf: Any) -> None:
    from core.trainer.exact.steps.excerpt import excerpt

    count = 2**24 + 3
    weight = tf.Variable(tf.zeros([count]))
    step = tf.function(lambda x, shares: weight + x[0]).get_concrete_function(
        tf.TensorSpec([None]), tf.TensorSpec([1], tf.int64)
    )
    values = excerpt(step, [step.graph.outputs[0]], [], [weight])
    moved = values(tf.zeros([2]), tf.constant([1], tf.int64), tf.constant(1.0), tf.constant(0))[0]
    assert moved.shape == count
    assert int(tf.math.count_nonzero(moved)) == count
