"""Values of a step's logs that follow from metrics alone, whatever they are called: ``tracker.result()``.

In the step they are of the own rows; computed anew where members have met, they are of all rows. Their part
of the step's graph is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.steps.own_writes import functions


def of_metrics(step: Any, variables: Iterable[Any]) -> dict[str, Callable[[], Any]]:
    """By name, what computes it from the present values. ``variables``: the metrics', of a traced `step`."""
    logs = step.graph.structured_outputs.logs
    outer = {inner.name: handle for handle, inner in step.graph.captures if handle.dtype == tf.resource}
    metrics = {id(variable.handle) for variable in variables}
    found: dict[str, Callable[[], Any]] = {}
    for name, tensor in logs.items() if isinstance(logs, dict) else ():
        if not isinstance(tensor, tf.Tensor) or getattr(tensor, "graph", None) is not step.graph:
            continue
        ops = _computed_by(tensor)
        read = [op for op in ops if op.type == "ReadVariableOp"]
        alone = all(op in read or _follows(op) for op in ops)
        handles = [outer.get(op.inputs[0].name) for op in read]
        if alone and None not in handles and any(id(handle) in metrics for handle in handles):
            found[name] = partial(_computed, tensor, ops, outer)
    return found


def _follows(op: Any) -> bool:
    """Whether what it gives follows from its inputs."""
    if op.type == "Placeholder":
        return bool(op.outputs[0].dtype == tf.resource)
    return not op.op_def.is_stateful and not functions(op)


def _computed_by(tensor: Any) -> list[Any]:
    """The operations that a tensor is computed by, each after those that it needs."""
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
