"""Finds variables that a traced step writes from own rows: they must be reduced, or members would diverge.

Follows values that differ between members through the step's graph, and through the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import auto_control_deps_utils

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import local_state
from core.trainer.exact.members.trace_record import Key, Scalar, TraceRecord, key, line_of

_LOOPS = 3
"""Loop iterations after which differing values have spread over everything the loop carries."""


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A variable that members would write differently, and the script line that writes it."""

    handle: Any
    line: str


def own_writes(step: Any, record: TraceRecord, local: Iterable[Any]) -> list[OwnWrite]:
    """A traced step's own writes, except to the variables that always differ between meetings (``local``)."""
    known = {id(variable.handle) for variable in local}
    outer = {inner.name: handle for handle, inner in step.graph.captures if handle.dtype == tf.resource}
    walk = _Walk(record)
    before = -1
    while len(walk.unlike) > before:  # What is written from own rows differs when the next step reads it.
        before = len(walk.unlike)
        walk.through(step.graph, set(), outer)
    return [write for name, write in walk.writes.items() if name not in known]


def states(graph: Any, metrics: Iterable[Any]) -> list[Scalar]:
    """How much a traced step changes the states of metrics with classes from the script."""
    handles = {id(handle): inner.name for handle, inner in graph.captures}
    own = {
        handles[id(variable.handle)]: (metric.name, variable)
        for listed in metrics
        for metric in getattr(listed, "metrics", None) or [listed]
        if not type(metric).__module__.startswith("keras.")
        for variable in local_state.values_of(metric.variables)
        if id(variable.handle) in handles and (variable.dtype.is_floating or variable.dtype.is_integer)
    }
    found = []
    for op in graph.get_operations():
        if op.type in ("AssignVariableOp", "AssignAddVariableOp") and op.inputs[0].name in own:
            name, variable = own[op.inputs[0].name]
            before = float(np.sum(variable.numpy())) if op.type == "AssignVariableOp" else 0.0
            found.append(Scalar("state", op.inputs[1], name, before))
    return found


def metrics_in_gradients(step: Any, gradients: Sequence[Any], metrics: Iterable[Any]) -> list[str]:
    """Names of metrics that a traced step writes and from whose values its gradients follow.

    Within a call of several steps these values are those of a member's own rows.
    """
    parts = {key(part) for part in tf.nest.flatten(list(gradients), expand_composites=True)}
    outer = {inner.name: handle for handle, inner in step.graph.captures if handle.dtype == tf.resource}

    def follow(states: Iterable[Any]) -> bool:
        walk = _Walk(TraceRecord(), unlike={id(state.handle) for state in states})
        walk.through(step.graph, set(), outer)
        return not parts.isdisjoint(walk.differing)

    written = [
        (metric.name, local_state.written(step.graph, local_state.values_of(metric.variables)))
        for listed in metrics
        for metric in getattr(listed, "metrics", None) or [listed]
    ]
    if not parts or not follow(state for _, states in written for state in states):
        return []
    return [name for name, states in written if follow(states)]


@dataclass(slots=True)
class _Walk:
    record: TraceRecord
    unlike: set[int] = field(default_factory=set)
    """Handles of variables that differ."""
    writes: dict[int, OwnWrite] = field(default_factory=dict)
    differing: set[Key] = field(default_factory=set)
    """Tensors that differ, of any graph."""

    def through(
        self, graph: Any, unlike: set[str], handles: dict[str, Any], *, is_chosen: bool = False
    ) -> set[str]:
        """Names of the tensors of `graph` that differ. ``unlike``: names of the inputs that do.

        ``is_chosen``: whether the graph runs at all differs, and so does everything it writes.
        """
        unlike = set(unlike)
        for op in graph.get_operations():
            differs = any(tensor.name in unlike for tensor in op.inputs)
            inner = functions(op)
            if inner:
                found = self._called(op, inner, unlike, handles, is_chosen=is_chosen)
            else:
                found = (
                    {tensor.name for tensor in op.outputs} if differs or self._reads(op, handles) else set()
                )
                if differs or is_chosen:
                    self._written(op, handles)
            for tensor in op.outputs:
                own, same = key(tensor) in self.record.own, key(tensor) in self.record.same
                if own or (tensor.name in found and not same):
                    unlike.add(tensor.name)
                    self.differing.add(key(tensor))
        return unlike

    def _called(
        self, op: Any, graphs: list[Any], unlike: set[str], handles: dict[str, Any], *, is_chosen: bool
    ) -> set[str]:
        given = (
            list(op.inputs)[1:]
            if op.type in ("If", "StatelessIf", "Case", "StatelessCase")
            else list(op.inputs)
        )
        choice = len(given) < len(op.inputs) and op.inputs[0].name in unlike
        differs = [tensor.name in unlike for tensor in given]
        found = [choice] * len(op.outputs)
        for _ in range(_LOOPS if "While" in op.type else 1):
            for graph in graphs:
                names = [tensor.name for tensor in graph.inputs]
                resources = {
                    n: handles[t.name] for n, t in zip(names, given, strict=False) if t.name in handles
                }
                unlike_inside = {n for n, d in zip(names, differs, strict=False) if d}
                inside = self.through(graph, unlike_inside, resources, is_chosen=is_chosen or choice)
                for place, tensor in enumerate(graph.outputs):
                    if tensor.name in inside and place < len(found):
                        found[place] = True
            if "While" in op.type:
                differs = [a or b for a, b in zip(differs, found, strict=False)]
        return {tensor.name for tensor, own in zip(op.outputs, found, strict=True) if own}

    def _reads(self, op: Any, handles: dict[str, Any]) -> bool:
        return any(t.name in handles and id(handles[t.name]) in self.unlike for t in op.inputs)

    def _written(self, op: Any, handles: dict[str, Any]) -> None:
        if "Rng" in op.type or "Random" in op.type:
            return  # Writes a generator's position: only random numbers differ.
        if op.type.startswith("Collective") or op.type in local_state.LOOKUPS:
            return  # Writes the token by which TensorFlow orders meetings; or only reads a table.
        _, written = auto_control_deps_utils.get_read_write_resource_inputs(op)
        for tensor in written:
            if tensor.name in handles:
                handle = handles[tensor.name]
                self.unlike.add(id(handle))
                self.writes.setdefault(id(handle), OwnWrite(handle, line_of(op)))


def functions(op: Any) -> list[Any]:
    """The graphs of the functions that an operation calls."""
    graphs = []
    for value in op.node_def.attr.values():
        for function in [value.func] if value.HasField("func") else value.list.func:
            graph = private.function_graph(op.graph, function.name)
            if graph is not None:
                graphs.append(graph)
    return graphs
