"""State that a step changes from this member's own rows only: metrics, which are sums over rows.

It differs between members until `meet` adds up their increments, which gives the state after all rows.
Nothing else may be written from a member's own rows (`steps/own_writes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import auto_control_deps_utils

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members.collectives import Collectives

LOOKUPS = {"LookupTableFindV2", "LookupTableSizeV2"}
"""Operations that only read a table, such as one of words; TensorFlow lists them with those that write."""


def metric_variables(model: Any) -> list[Any]:
    return values_of(variable for metric in private.every_metric(model) for variable in metric.variables)


def written(graph: Any, variables: Sequence[Any]) -> list[Any]:
    """The `variables` that a traced graph writes; a frozen model's weights are only read."""
    handles = {id(handle) for handle in written_handles(graph)}
    return [variable for variable in variables if id(variable.handle) in handles]


def written_handles(graph: Any) -> list[Any]:
    """Handles of the variables, and of other stateful resources, that a traced graph writes."""
    reads = set(auto_control_deps_utils.get_read_only_resource_input_indices_graph(graph))
    places = {id(placeholder): index for index, placeholder in enumerate(graph.inputs)}
    return [
        outer
        for outer, inner in graph.captures
        if outer.dtype == tf.resource
        and places.get(id(inner)) not in reads
        and not all(op.type in LOOKUPS for op in inner.consumers())
    ]


class LocalState:
    """The variables of one model's metrics, and their reduction over members."""

    def __init__(self, variables: Sequence[Any], collectives: Collectives) -> None:
        self._collectives = collectives
        self.variables = [v for v in variables if _is_number(v)]

    def snapshot(self) -> list[Any]:
        return [tf.identity(variable) for variable in self.variables]

    def restore_unless(self, keep: Any, values: Sequence[Any]) -> None:
        """Undoes what a placeholder row did to this member's state, unless `keep`."""

        def restore() -> Any:
            for variable, value in zip(self.variables, values, strict=True):
                variable.assign(value)
            return tf.constant(0)

        tf.cond(keep, lambda: tf.constant(0), restore)

    def meet(self, before: Sequence[Any], extra: Sequence[Any], steps: Any) -> list[Any]:
        """Reduces the state changed since the snapshot `before`; returns the sums over members of `extra`.

        One all-reduce of float64, in which sums of float32 and counts up to 2**53 are exact.
        """
        parts = [
            tf.reshape(tf.cast(variable, tf.float64) - tf.cast(old, tf.float64), [-1])
            for variable, old in zip(self.variables, before, strict=True)
        ]
        parts.append(tf.stack([tf.cast(value, tf.float64) for value in extra]))
        sizes = [int(v.shape.num_elements()) for v in self.variables] + [len(extra)]
        total = self._collectives.sum(tf.concat(parts, axis=0), "the results (steps: {})", steps)
        *changes, sums = tf.split(total, sizes)
        for variable, old, change in zip(self.variables, before, changes, strict=True):
            value = tf.cast(old, tf.float64) + tf.reshape(change, variable.shape)
            variable.assign(tf.cast(value, variable.dtype))
        return tf.unstack(sums, num=len(extra))


def _is_number(variable: Any) -> bool:
    return (variable.dtype.is_floating or variable.dtype.is_integer) and variable.shape.is_fully_defined()


def values_of(variables: Iterable[Any]) -> list[Any]:
    """TensorFlow's variables, also those behind Keras', each once."""
    values = [each if isinstance(each, tf.Variable) else getattr(each, "value", each) for each in variables]
    return list({id(value): value for value in values if isinstance(value, tf.Variable)}.values())


class StateSnapshot:
    """The values of everything that traced steps write, so that steps can be tried and undone.

    Copies are in this process' memory, not on a GPU. Handles find variables, whoever created them.
    """

    def __init__(self, graphs: Iterable[Any], handles: Iterable[Any] = ()) -> None:
        """``handles``: of further variables.

        Raises ValueError if a graph writes something other than a variable (such as a lookup table).
        """
        found = {id(handle): handle for graph in graphs for handle in written_handles(graph)}
        found |= {id(handle): handle for handle in handles}
        # A tensor that was read stays unchanged; TensorFlow copies its memory when the variable is written.
        self._values = [(handle, read_value(handle).cpu()) for handle in found.values()]

    @property
    def bytes(self) -> int:
        return sum(value.shape.num_elements() * value.dtype.size for _, value in self._values)

    def restore(self) -> None:
        for handle, value in self._values:
            assign(handle, value)


def assign(handle: Any, value: Any) -> None:
    """Assigns to the variable behind a handle, whoever created it."""
    with tf.device(handle.device):
        tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(value))


def is_number(handle: Any) -> bool:
    try:
        dtype = tf.as_dtype(private.variable_dtype(handle))
    except ValueError:
        return False
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool)


def read(handle: Any) -> Any:
    """The value of the variable behind a handle, in this process' memory."""
    return read_value(handle).numpy()


def read_value(handle: Any) -> Any:
    """The value of the variable behind a handle, as a tensor on the variable's device."""
    dtype = private.variable_dtype(handle)
    with tf.device(handle.device):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
