"""Writes what Keras' last call in an epoch still writes, although it finds no batch.

Keras notices the end of data of unknown length only in a step, and TensorFlow runs operations that need no
batch without waiting for one: the optimizer counts a step, dropout draws its next seed, weights decay. With
Keras 3.15 and TensorFlow 2.21 on processors, all of these were measured to happen each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import lift_to_graph

from core.trainer.exact.keras import model_state
from core.trainer.exact.steps import while_loop
from core.trainer.exact.steps.data import Portion
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.result import Traced

_ASSIGNS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


@contextmanager
def as_in_keras(engine: Engine, model: Any, traced: Mapping[str, Traced], portion: Portion) -> Iterator[None]:
    """A context in which a training step on ``portion`` that finds no batch writes what it would in Keras."""
    try:
        yield
    except StopIteration:
        step = traced.get(repr(while_loop.free_rows(portion.iterator.element_spec)))
        data = engine.fit.iterator
        # Compiled or eager steps, and several in one execution, wait for their batch.
        if step and data and data.steps_per_execution == 1 and not (model.run_eagerly or model.jit_compile):
            step.at_end = step.at_end or writer(step.step, model_state.variables(model))
            step.at_end()
        raise


def writer(step: Any, variables: Iterable[Any]) -> Callable[[], object]:
    """A function that makes those of a traced step's writes to `variables` that need no batch."""
    operations = writes_without_batch(step, variables)

    def write() -> None:
        if operations:
            lift_to_graph.lift_to_graph(
                operations,
                tf.compat.v1.get_default_graph(),
                sources=step.graph.internal_captures,
                handle_captures=True,
                base_graph=step.graph,
            )

    return tf.function(write, autograph=False)


def writes_without_batch(step: Any, variables: Iterable[Any]) -> list[Any]:
    """Operations of a traced step that write `variables` and wait for nothing computed from a batch."""
    values = (each if isinstance(each, tf.Variable) else each.value for each in variables)
    handles = {id(value.handle) for value in values}
    captured = {inner.op.name: id(outer) for outer, inner in step.graph.captures}
    waiting = {tensor.op.name for tensor in step.graph.inputs} - set(captured)
    found = []
    for operation in step.graph.get_operations():
        before = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
        if any(each.name in waiting for each in before):
            waiting.add(operation.name)
        elif operation.type in _ASSIGNS and captured.get(operation.inputs[0].op.name) in handles:
            found.append(operation)
    return found
