"""A separately runnable part of a traced step: some of its tensors, computed from batches and shares.

The step's graph is copied, so the script's own code does not run again. Random values become constant, and
batches are not normalised, so that the tensors' values follow from the rows alone.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members.trace_record import pads
from core.trainer.exact.steps.own_writes import functions

_KEPT = 0.999
"""Replaces a uniform random number: with this value dropout drops nothing."""
_AWAY = 0.5
"""Replaces any other random number."""
_CREATE = inspect.unwrap(tf.Graph.create_op)
"""Unwrapped: the wrapper's check for old argument names takes longer than making an operation."""
_TURN = 12.9898
"""Radians between two entries of a perturbed weight, to make them differ."""


class Unreadable(Exception):
    """The values of these tensors do not follow from the rows alone."""


def excerpt(step: Any, tensors: Sequence[Any], moments: Sequence[Any], weights: Sequence[Any]) -> Any:
    """A function that computes `tensors` from (batch, shares, stir, wider), the first two as in `step`.

    ``moments``: of batches, in pairs of a mean and a variance. ``weights``: variables that are perturbed: a
    bias by at most `stir`, a kernel so that what it adds up changes by about as much. ``wider``: entries
    added to rows that are padded to the longest one, which may be longer in another batch.

    The function raises Unreadable.
    """
    own = len(step.graph.inputs) - len(step.captured_inputs)
    inputs, captured = step.graph.inputs[:own], step.graph.inputs[own:]

    summands = {
        id(weight.handle): math.prod(weight.shape[:-1]) for weight in weights if weight.dtype.is_floating
    }
    stirred = {
        inner.name: max(1, summands[id(outer)]) ** -0.5
        for inner, outer in zip(captured, step.captured_inputs, strict=True)
        if id(outer) in summands
    }

    def values(batch: Any, shares: Any, stir: Any, wider: Any) -> list[Any]:
        given = tf.nest.flatten((batch, shares), expand_composites=True)
        given = [leaf for leaf in given if leaf is not None]
        if len(given) != len(inputs):
            raise Unreadable("the batch has other parts than the traced step's")
        graph = tf.compat.v1.get_default_graph()
        known = {inner.name: tensor for inner, tensor in zip(inputs, given, strict=True)}
        for inner, outer in zip(captured, step.captured_inputs, strict=True):
            known[inner.name] = graph.capture(outer)
        copy = _Copy(known, stirred, stir, wider)
        for number, moment in enumerate(moments):
            if moment.graph is step.graph and moment.shape.is_fully_defined():
                known[moment.name] = tf.fill(moment.shape, tf.cast(number % 2, moment.dtype))
        return [copy.of(tensor) for tensor in tensors]

    return tf.function(values, autograph=False)


class _Copy:
    """Copies into the graph being traced. Names identify tensors: a loop's are recreated for its gradient."""

    def __init__(self, known: dict[str, Any], stirred: dict[str, float], stir: Any, wider: Any) -> None:
        self._known = known
        self._wider = wider
        self._stirred, self._stir = stirred, stir
        self._ops: dict[str, Any] = {}

    def of(self, tensor: Any) -> Any:
        for op in self._needed(tensor):
            self._copy(op)
        return self._known[tensor.name]

    def _needed(self, tensor: Any) -> list[Any]:
        """Operations still to be copied, each after those that it needs.

        This is not their trace order: a loop stores values for its gradient in lists created later.
        """
        order: list[Any] = []
        seen = set(self._ops)
        left = [] if tensor.name in self._known else [(tensor.op, False)]
        while left:
            op, is_ready = left.pop()
            if is_ready:
                order.append(op)
            elif op.name not in seen:
                seen.add(op.name)
                left.append((op, True))
                left += [(each.op, False) for each in op.inputs if each.name not in self._known]
                left += [(each, False) for each in op.control_inputs if each.type != "Placeholder"]
        return order

    def _copy(self, op: Any) -> None:
        inputs = [self._known[each.name] for each in op.inputs]
        neutral = _neutral(op, inputs)
        if neutral is not None:
            self._ops[op.name] = neutral.op
            self._known[op.outputs[0].name] = neutral
            return
        if any(_is_stateful_random(inner) for graph in functions(op) for inner in graph.get_operations()):
            raise Unreadable(f"{op.name} is random inside")
        before = [self._ops[each.name] for each in op.control_inputs if each.name in self._ops]
        with tf.control_dependencies(before), tf.device(op.device):
            copy = _CREATE(
                tf.compat.v1.get_default_graph(),
                op.type,
                inputs,
                [each.dtype for each in op.outputs],
                attrs=private.attributes(op),
                name="excerpt",
            )
        self._ops[op.name] = copy
        for old, new in zip(op.outputs, copy.outputs, strict=True):
            new.set_shape(old.shape)
            if op.type == "ReadVariableOp" and op.inputs[0].name in self._stirred:
                turns = tf.cast(tf.range(tf.size(new)) + 1, tf.float32) * _TURN
                most = tf.cast(self._stir * self._stirred[op.inputs[0].name], new.dtype)
                new += most * tf.reshape(tf.cast(tf.sin(turns), new.dtype), tf.shape(new))
            if pads(op):
                new = tf.concat([new, self._padding(new, inputs[2])], axis=1)
            self._known.setdefault(old.name, new)

    def _padding(self, padded: Any, value: Any) -> Any:
        shape = tf.shape(padded)
        return tf.broadcast_to(value, tf.concat([shape[:1], [self._wider], shape[2:]], axis=0))


def _is_random(op: Any) -> bool:
    kinds = ("Random", "Multinomial", "TruncatedNormal")
    return any(kind in op.type for kind in kinds) and not op.type.endswith("Grad")


def _is_stateful_random(op: Any) -> bool:
    """Whether an operation draws new numbers each time; others draw the same from a seed, for all rows."""
    return _is_random(op) and not op.type.startswith("Stateless")


def _neutral(op: Any, inputs: list[Any]) -> Any:
    """The replacement for what an operation draws; None for one that draws nothing."""
    if not _is_random(op) or op.type == "StatelessRandomGetKeyCounter" or "GetAlg" in op.type:
        return None
    dtype = op.outputs[0].dtype
    if op.type == "RandomShuffle":
        return tf.identity(inputs[0])
    if op.type in ("RandomUniformInt", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2"):
        lowest = {"RandomUniformInt": 1, "StatelessRandomUniformInt": 2}.get(op.type, 4)
        return tf.fill(inputs[0], tf.reshape(inputs[lowest], []))
    if op.type in ("Multinomial", "StatelessMultinomial"):
        return tf.zeros([tf.shape(inputs[0])[0], tf.cast(inputs[1], tf.int32)], dtype)
    if op.type in ("RandomGamma", "RandomPoissonV2"):
        shape = tf.concat([inputs[0], tf.shape(inputs[1], inputs[0].dtype)], axis=0)
        return tf.fill(shape, tf.cast(_AWAY, dtype))
    if not inputs or not inputs[0].dtype.is_integer or inputs[0].shape.rank != 1:
        raise Unreadable(f"{op.type} is random")
    is_share = "Uniform" in op.type and dtype.is_floating
    return tf.fill(inputs[0], tf.cast(_KEPT if is_share else _AWAY, dtype))
