"""Whether a traced step can be audited: computed twice without side effects, within one member's memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import local_state
from core.trainer.exact.keras.local_state import StateSnapshot
from core.trainer.exact.members import memory
from core.trainer.exact.members.exchange_ops import MEETING
from core.trainer.exact.members.fewer_bits import rounding_of, wire_type
from core.trainer.exact.members.step import count_rows
from core.trainer.exact.members.step_meter import ONCE
from core.trainer.exact.steps import rerun
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.own_writes import functions
from core.trainer.exact.steps.result import Batch, Traced

_WATCHED, _WATCHED_NUMBERS = 64, 1024
"""Most variables watched that a step reads and a script may set, and most numbers in each."""
_COPIES = 3
"""Copies of everything a step writes that an audit holds at once."""
_ANY_LENGTH = 128
"""Assumed length of an axis of unknown length."""
_REPEATABLE = (
    *("Placeholder", "VarHandleOp", "ReadVariableOp", "VariableShape", "VarIsInitializedOp", "NoOp"),
    *("PartitionedCall", "StatefulPartitionedCall", "If", "While", "Case", "Stateless", "Assert"),
    *("Assign", "Resource", "TensorList", "Rng", "StatefulStandardNormalV2", "StatefulTruncatedNormal"),
    *("StatefulUniform", "LookupTableFind", "LookupTableSize", "Timestamp", "Collective"),
)
"""Name prefixes of operations that keep state, or may, but can be repeated once variables are restored."""

_IN_SCRIPTS = {
    "PrintV2": "tf.print",
    "EagerPyFunc": "tf.py_function",
    "PyFunc": "tf.numpy_function",
    "Random": "what tf.random draws without a generator",
    "Multinomial": "what tf.random draws without a generator",
    "Write": "a summary that is written",
}


def unable(engine: Engine, model: Any, traced: Traced) -> str:
    """Why a step cannot be computed twice, worded for the summary; "" if it can."""
    why = unrepeatable(engine, model, traced)
    if not why and tf.config.list_logical_devices("GPU") and not traced.row_limits:
        why = "how much fits into a graphics card's memory is not known"
    return why


def unrepeatable(engine: Engine, model: Any, traced: Traced) -> str:
    """Why the step itself cannot be computed twice, worded for the summary; "" if it can."""
    if model.run_eagerly:
        return "it runs eagerly"
    if (kind := _wire_type(engine, model)) is not None:
        return f"gradients are sent in {8 * kind.size} bits"
    if is_narrow(engine, model):
        return "numbers have 16 bits"
    if traced.record.own_draws:
        return "members draw their own random numbers"
    if op := unrepeatable_op(traced.step.graph):
        return f"{_name_in_scripts(op)} in a step cannot be done twice"
    try:
        copied = StateSnapshot([traced.step.graph]).bytes
    except ValueError as error:
        return str(error)
    return (
        "" if _COPIES * copied <= memory.free_bytes() // 2 else "there is no memory for copies of its values"
    )


def sums_alone(engine: Engine, model: Any) -> bool:
    """Whether audits cover only the members' sums; the same on all members, whatever their processors."""
    return bool(model.run_eagerly) or is_narrow(engine, model)


def gradients_alone(engine: Engine, model: Any, traced: Traced) -> bool:
    """Whether only gradients can be computed twice, as the step has effects that they do not depend on; the
    same on all members."""
    if model.run_eagerly or is_narrow(engine, model) or traced.record.own_draws:
        return False
    graph, seen = traced.step.graph, set()
    gradients = tf.nest.flatten(traced.record.gradients, expand_composites=True)
    if not gradients or not unrepeatable_op(graph) or any(each.graph is not graph for each in gradients):
        return False
    left = [each.op for each in gradients]
    while left:
        op = left.pop()
        if op.name not in seen:
            seen.add(op.name)
            if _unrepeatable(op):
                return False
            left += [*(each.op for each in op.inputs), *op.control_inputs]
    return True


def is_narrow(engine: Engine, model: Any) -> bool:
    """Whether the model's steps compute or send numbers of 16 bits or fewer."""
    return _wire_type(engine, model) is not None or "16" in model.dtype_policy.compute_dtype


def sums_rounding(engine: Engine, model: Any) -> float:
    """The relative error of one addition of gradients, in the type in which they are sent."""
    types = [tf.as_dtype(weight.dtype) for weight in model.trainable_variables]
    return max(map(rounding_of, [*types, _wire_type(engine, model)]))


def _wire_type(engine: Engine, model: Any) -> Any:
    elements = sum(weight.shape.num_elements() or 0 for weight in model.trainable_variables)
    return wire_type(engine.wire, elements)


def needed_bytes(engine: Engine, model: Any, traced: Traced, batch: Batch, step_s: float) -> int:
    """The most memory that audits take: for copies of the values, a whole batch on one member, and steps kept
    to be repeated. 0 if no step is audited. ``step_s``: of a step."""
    if unable(engine, model, traced):
        return 0
    graph = traced.step.graph
    values_bytes = StateSnapshot([graph]).bytes
    kept_bytes = rerun.kept_bytes(engine, batch, values_bytes, step_s)
    return _COPIES * values_bytes + most_bytes(graph, count_rows(batch)) + kept_bytes


def lacks_memory(traced: Traced, rows: int) -> bool:
    """Whether this member may lack the memory to compute all of these rows."""
    return not traced.row_limits and fitting_rows(traced, rows) < rows


def fitting_rows(traced: Traced, rows: int) -> int:
    """How many of these rows surely fit into this member's memory: all, or half of them, a quarter …"""
    free = memory.free_bytes() // 2
    while rows and most_bytes(traced.step.graph, rows) > free:
        rows //= 2
    return rows


def _name_in_scripts(op: str) -> str:
    """The name by which a script calls an operation."""
    kind = op.partition(" ")[0]
    named = (name for begin, name in _IN_SCRIPTS.items() if kind.startswith(begin))
    return next(named, op)


def watched(step: Any, written: Sequence[Any]) -> list[Any]:
    """Handles of small variables that a step reads; `written` are those that it writes."""
    known = {id(handle) for handle in written}
    found = []
    for handle, _ in step.graph.captures:
        if handle.dtype == tf.resource and id(handle) not in known and local_state.is_number(handle):
            found += [handle] if local_state.read(handle).size <= _WATCHED_NUMBERS else []
    return sorted(found, key=lambda handle: int(local_state.read(handle).size))[:_WATCHED]


def most_bytes(graph: Any, rows: int) -> int:
    """Bytes of everything that a step computes, as if nothing were freed before its end.

    If the rows' shapes are known, a tensor of unknown shape counts at most as the largest of known shape.
    """
    known, unknown = [0], [0]
    for op in graph.get_operations():
        for tensor in op.outputs:
            if tensor.shape.rank is not None and tensor.dtype.is_numpy_compatible:
                sizes = [
                    rows if not place and size is None else size for place, size in enumerate(tensor.shape)
                ]
                size_bytes = math.prod(size or _ANY_LENGTH for size in sizes) * tensor.dtype.size
                (unknown if None in sizes else known).append(size_bytes)
    given = [tensor.shape for tensor in graph.inputs if tensor.dtype != tf.resource]
    are_known = all(shape.rank is not None and shape[1:].is_fully_defined() for shape in given)
    return sum(known) + sum(min(each, max(known)) if are_known else each for each in unknown)


def unrepeatable_op(graph: Any) -> str:
    """The first operation with side effects beyond variables, or with hidden state; "" if none."""
    return next(filter(None, map(_unrepeatable, graph.get_operations())), "")


def _unrepeatable(op: Any) -> str:
    """Such an operation: this one, or one within the functions that it calls."""
    if op.type in ("If", "StatelessIf") and ONCE in op.name:
        return ""
    own = op.type in ("EagerPyFunc", "PyFunc") and MEETING in op.name
    if op.op_def is not None and op.op_def.is_stateful and not own and not op.type.startswith(_REPEATABLE):
        return f"{op.type} ({op.name})"
    return next(filter(None, map(unrepeatable_op, functions(op))), "")
