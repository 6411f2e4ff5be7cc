"""What a step prints appears once, and in its order, however often the step is computed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.cluster


def test_a_repeated_step_prints_nothing_and_may_be_audited(capfd: pytest.CaptureFixture[str]) -> None:
    import tensorflow as tf
    from tensorflow.python.ops import gen_logging_ops

    from core.trainer.exact.keras import keras_private
    from core.trainer.exact.members import step as steps
    from core.trainer.exact.members.step_meter import StepMeter
    from core.trainer.exact.patch import in_step
    from core.trainer.exact.steps.auditable import unrepeatable_op

    keras_private.replace(gen_logging_ops, "print_v2", in_step.print_once)
    meter = StepMeter()

    def step(x: Any) -> Any:
        def inside() -> Any:
            tf.print("inside", x)
            return x

        with steps.active(SimpleNamespace(meter=meter, weight=tf.identity(x))):  # type: ignore[arg-type]
            tf.print("before", x)
            y = tf.cond(x > 0.0, inside, lambda: -x)
            with tf.control_dependencies([tf.print("after", x)]):
                return y + 1.0

    function = tf.function(step, [tf.TensorSpec([])], autograph=False)
    assert unrepeatable_op(function.get_concrete_function().graph) == ""
    for number, repeats in ((1.0, False), (2.0, True), (3.0, False)):
        meter.repeats.assign(repeats)
        function(tf.constant(number))
    printed = [line for line in capfd.readouterr().err.splitlines() if line[-1:] in "123"]
    assert printed == [f"{word} {number}" for number in (1, 3) for word in ("before", "inside", "after")]
