"""Which functions are inlined in a step that members share."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.cluster


def test_functions_of_the_script_are_inlined_and_grouped_convolutions_stay_compiled(
    tf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without XLA, their gradients do not exist on processors for which TensorFlow does not use oneDNN."""
    import keras

    from core.trainer.exact.members import step as steps
    from core.trainer.exact.members.step_meter import StepMeter
    from core.trainer.exact.patch import in_step

    def of_the_script(x: Any) -> Any:
        return keras.ops.conv(x, tf.ones((3, 3, 2, 4)), padding="same")

    own = tf.function(of_the_script, jit_compile=True)
    kind = type(own)
    original = kind.__call__

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        return in_step.call_function(original, function, *args, **kwargs)

    monkeypatch.setattr(kind, "__call__", call)

    def gradient(x: Any) -> Any:
        part, rows = tf.constant(0.75), tf.constant(64, tf.int64)
        step = steps.Step(object(), part, tf.constant(True), rows, StepMeter())  # type: ignore[arg-type]
        with steps.active(step), tf.GradientTape() as tape:
            tape.watch(x)
            found = tf.reduce_sum(own(x) ** 2)
        assert step.record.not_compiled == {"of_the_script"}, "the step as a whole cannot be"
        return tape.gradient(found, x)

    graph = tf.Graph()
    with graph.as_default():
        gradient(tf.ones((2, 8, 8, 4)))
    calls = [op for op in graph.get_operations() if "PartitionedCall" in op.type]
    assert calls and all(op.get_attr("_XlaMustCompile") for op in calls)
