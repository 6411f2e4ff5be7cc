"""Values of a step's logs that follow from metrics alone, whatever their names, such as ``tracker.result()``.

Inside the step they cover only the own rows; recomputed after a meeting, they cover all rows. Their part of
the step's graph is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import local_state
from core.trainer.exact.steps.own_writes import functions
from core.trainer.exact.steps.result import Traced


def of_metrics(step: Any, variables: Iterable[Any]) -> dict[str, Callable[[], Any]]:
    """Functions that compute a traced step's logs from the present values of metrics' variables, by name."""
    logs = step.graph.structured_outputs.logs
    outer = {inner.name: handle for handle, inner in step.graph.captures if handle.dtype == tf.resource}
    metrics = {id(variable.handle) for variable in variables}
    found: dict[str, Callable[[], Any]] = {}
    for name, tensor in logs.items() if isinstance(logs, dict) else ():
        if not isinstance(tensor, tf.Tensor) or getattr(tensor, "graph", None) is not step.graph:
            continue
        ops = _computed_by(tensor)
        read = [op for op in ops if op.type == "ReadVariableOp"]
        follows = all(op in read or _follows(op) for op in ops)
        handles = [outer.get(op.inputs[0].name) for op in read]
        if follows and None not in handles and any(id(handle) in metrics for handle in handles):
            found[name] = partial(_computed, tensor, ops, outer)
    return found


def results(model: Any, traced: Traced) -> dict[str, Any]:
    """Results of metrics that the step updates: a custom step may return a "loss" and update none."""
    found = model.get_metrics_result()
    if not model.run_eagerly:
        for metric in model.metrics:
            if not local_state.written(traced.step.graph, local_state.values_of(metric.variables)):
                found.pop(metric.name, None)
    found = {name: tf.convert_to_tensor(value) for name, value in found.items()}
    return {**found, **{name: value() for name, value in traced.log_values.items() if name not in found}}


def _follows(op: Any) -> bool:
    """Whether an operation's output follows from its inputs alone."""
    if op.type == "Placeholder":
        return bool(op.outputs[0].dtype == tf.resource)
    return not op.op_def.is_stateful and not functions(op)


def _computed_by(tensor: Any) -> list[Any]:
    """The operations that compute a tensor, each after those that it needs."""
    order = {op.name: place for place, op in enumerate(tensor.graph.get_operations())}
    found, left = {}, [tensor.op]
    while left:
        op = left.pop()
        if op.name not in found:
            found[op.name] = op
            left += [] if op.type == "ReadVariableOp" else [each.op for each in op.inputs]
    return sorted(found.values(), key=lambda op: order[op.name])


def _computed(tensor: Any, ops: list[Any], outer: dict[str, Any]) -> Any:
    known: dict[str, Any] = {}
    graph = tf.compat.v1.get_default_graph()
    for op in ops:
        if op.type == "Placeholder":
            continue
        if op.type == "ReadVariableOp":
            dtype = op.outputs[0].dtype
            known[op.outputs[0].name] = tf.raw_ops.ReadVariableOp(
                resource=outer[op.inputs[0].name], dtype=dtype
            )
            continue
        copy = graph.create_op(
            op.type,
            [known[each.name] for each in op.inputs],
            [each.dtype for each in op.outputs],
            attrs=private.attributes(op),
            name="log",
        )
        for old, new in zip(op.outputs, copy.outputs, strict=True):
            new.set_shape(old.shape)
            known[old.name] = new
    return known[tensor.name]
