"""Several steps inside one call into TensorFlow: a while loop in its graph, for any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from core.trainer.exact.steps.result import Spec, StepOutputs, Tensor


def loop(condition: Callable[..., Any], body: Callable[..., Any], start: list[Any], step: Any) -> Any:
    """A while loop over `start` and the step's outputs, which are zeros before the first step."""
    specs = tf.nest.flatten(step.structured_outputs)
    shapes = [tf.TensorShape([size or 0 for size in spec.shape.as_list()]) for spec in specs]
    zeros = [tf.zeros(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True)]
    invariants = [tf.nest.map_structure(_invariant, value) for value in start]
    return tf.while_loop(
        condition,
        body,
        [*start, *zeros],
        shape_invariants=[*invariants, *(spec.shape for spec in specs)],
        parallel_iterations=1,
    )


def up_to(limit: Tensor, step: Any, run: Callable[[], StepOutputs]) -> list[Tensor]:
    """Calls `run` `limit` times. Returns how often, the sum of rows, and the last step's outputs, flat."""

    def body(done: Tensor, rows: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        outputs = run()
        return done + 1, rows + outputs.rows, *flat(outputs)

    return loop(lambda done, *_: done < limit, body, [tf.constant(0), no_rows()], step)


def no_rows() -> Tensor:
    return tf.constant(0, tf.int64)


def packed(step: Any, outputs: list[Tensor]) -> StepOutputs:
    return tf.nest.pack_sequence_as(step.structured_outputs, outputs)


def flat(outputs: StepOutputs) -> list[Tensor]:
    return [tf.convert_to_tensor(value) for value in tf.nest.flatten(outputs)]


def spec_of(leaf: Tensor | None) -> Spec:
    return None if leaf is None else tf.TensorSpec(leaf.shape, leaf.dtype)


def free_rows(spec: Spec) -> Spec:
    """Specs with any number of rows."""

    def free(leaf: Any) -> Any:
        if isinstance(leaf, tf.TensorSpec) and leaf.shape.rank:
            return tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype)
        return leaf

    return tf.nest.map_structure(free, spec)


def _invariant(value: Any) -> Any:
    return value.shape if isinstance(value, tf.Tensor) else tf.type_spec_from_value(value)
