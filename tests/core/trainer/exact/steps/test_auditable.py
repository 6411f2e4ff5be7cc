"""Which traced steps may be computed twice: those whose only effects are on variables."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.cluster


def traced_of(tf: Any, body: Callable[[Any, Any], Any]) -> Any:
    """A step with one number per row, which writes one variable."""
    from core.trainer.exact.members.trace_record import TraceRecord

    total = tf.Variable(0.0)

    def step(x: Any) -> Any:
        return total.assign_add(body(x, total))

    return SimpleNamespace(
        step=tf.function(step).get_concrete_function(tf.TensorSpec([None])),
        record=TraceRecord(),
        row_limits=(),
    )


def refusal(tf: Any, body: Callable[[Any, Any], Any], **engine: Any) -> str:
    """The reason why such a step is not audited."""
    from core.trainer.exact.steps.auditable import unable

    policy = SimpleNamespace(compute_dtype="float32")
    weights = [tf.Variable(tf.zeros([300]))]
    model = SimpleNamespace(dtype_policy=policy, trainable_variables=weights, run_eagerly=False)
    given = SimpleNamespace(**{"wire": "f32", **engine})
    return unable(given, model, traced_of(tf, body))  # type: ignore[arg-type]


def test_a_step_that_reads_and_writes_variables_and_draws_by_a_seed_may_be_audited(tf: Any) -> None:
    generator = tf.random.Generator.from_seed(1)

    def body(x: Any, total: Any) -> Any:
        drawn = tf.random.stateless_normal(tf.shape(x), [1, 2]) + generator.normal(tf.shape(x))
        return tf.cond(total > 1.0, lambda: tf.reduce_sum(drawn), lambda: tf.reduce_mean(x))

    assert refusal(tf, body) == ""


def test_a_step_with_side_effects_or_hidden_state_may_not_be_audited(tf: Any) -> None:
    def printed(x: Any, total: Any) -> Any:
        tf.print(x)
        return tf.reduce_sum(x)

    def called(x: Any, total: Any) -> Any:
        return tf.reduce_sum(tf.py_function(lambda given: given, [x], tf.float32))

    def drawn_inside(x: Any, total: Any) -> Any:
        return tf.cond(
            total > 1.0, lambda: tf.reduce_sum(tf.random.uniform(tf.shape(x))), lambda: tf.reduce_sum(x)
        )

    assert refusal(tf, printed).startswith("tf.print in a step")
    assert refusal(tf, called).startswith("tf.py_function in a step")
    assert refusal(tf, drawn_inside).startswith("what tf.random draws")


def test_only_gradients_are_audited_if_a_step_calls_python_and_they_do_not_depend_on_it(tf: Any) -> None:
    from core.trainer.exact.steps.auditable import gradients_alone

    def called(x: Any) -> Any:
        return tf.reduce_sum(tf.py_function(lambda given: given, [x], tf.float32))

    def alone(loss: Any) -> bool:
        gradients = []

        def body(x: Any, total: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                found = loss(x)
            gradients.append(tape.gradient(found, x))
            return found + called(x)

        traced = traced_of(tf, body)
        traced.record.gradients = gradients
        model = SimpleNamespace(
            dtype_policy=SimpleNamespace(compute_dtype="float32"), trainable_variables=[], run_eagerly=False
        )
        return gradients_alone(SimpleNamespace(wire="f32"), model, traced)  # type: ignore[arg-type]

    assert alone(tf.reduce_max)
    assert not alone(lambda x: tf.reduce_max(x) * called(x))


def test_a_batch_that_may_not_fit_one_members_memory_is_not_computed_there(tf: Any) -> None:
    from core.trainer.exact.steps.auditable import lacks_memory

    traced = traced_of(tf, lambda x, total: tf.reduce_sum(x * 2.0))
    assert lacks_memory(traced, 10**13)
    assert not lacks_memory(traced, 64)
    traced.row_limits = (64, 8)
    assert not lacks_memory(traced, 10**13), "known by rank"


def test_a_tensor_of_unknown_shape_is_no_larger_than_the_largest_if_the_rows_are_known(tf: Any) -> None:
    from core.trainer.exact.steps.auditable import most_bytes

    sizes = tf.Variable([8, 8, 2])

    def step(x: Any) -> Any:
        return tf.reshape(x, tf.concat([tf.shape(x)[:1], sizes], 0)) * 2.0

    def bytes_of(*shape: int | None) -> int:
        return most_bytes(tf.function(step).get_concrete_function(tf.TensorSpec(shape)).graph, 64)

    image = 64 * 8 * 8 * 2 * 4
    assert bytes_of(None, 8, 8, 2) < 5 * image
    assert bytes_of(None, None, None, 2) > 1000 * image, "nothing is known of them"


def test_fewer_bits_on_the_wire_are_not_audited(tf: Any) -> None:
    for wire, bits in (("bf16", 16), ("int8", 8)):
        words = refusal(tf, lambda x, total: tf.reduce_sum(x), wire=wire)
        assert words == f"gradients are sent in {bits} bits"
    assert refusal(tf, lambda x, total: tf.reduce_sum(x), wire="auto") == "", (
        "a small model's bits are all sent"
    )
