"""Undoes a call into TensorFlow if a member leaves in the middle of it.

Stores the previous values of everything that its steps write, and the batches that it read, with TensorFlow's
own operations: reading a batch in Python takes as long as a small step. A step must wait for them explicitly:
TensorFlow does not order them before it, and drops operations that have not run when a step fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.keras.local_state import StateSnapshot

_NUMBERS = itertools.count()


class Undo:
    """Undoes the newest traced call.

    ``handles``: those of the variables that its steps write. ``spec``: that of a batch. ``effect``: what else
    a step does that cannot be undone; "" if nothing.
    """

    def __init__(self, handles: Sequence[Any], spec: Any, effect: str) -> None:
        self.effect = effect
        self._handles = handles
        self._types = [tf.as_dtype(private.variable_dtype(handle)) for handle in self._handles]
        self._spec = spec
        self._leaves = [each.dtype for each in _tensors(spec)]
        number = next(_NUMBERS)
        self._values, self._batches = f"tandem-values-{number}", f"tandem-batches-{number}"

    # --- traced into the call

    def begin(self) -> list[Any]:
        """The operations that must have run before the call's first step."""
        self.end()
        if not self._handles:
            return []
        # A value once read stays unchanged: TensorFlow copies a variable's memory when it is written later.
        values = [local_state.read_value(handle) for handle in self._handles]
        with tf.device("CPU:0"):
            return [tf.raw_ops.Stage(values=values, shared_name=self._values)]

    def stage(self, batch: Any) -> Any:
        """Stores a step's batch. Returns an operation that must have run before the step."""
        with tf.device("CPU:0"):
            return tf.raw_ops.Stage(values=_tensors(batch), shared_name=self._batches)

    def end(self) -> None:
        with tf.device("CPU:0"):
            tf.raw_ops.StageClear(dtypes=self._types or [tf.float32], shared_name=self._values)
            tf.raw_ops.StageClear(dtypes=self._leaves, shared_name=self._batches)

    # --- between calls

    def take_back(self) -> list[Any]:
        """Restores every value to that before the call; returns the batches that it read."""
        with tf.device("CPU:0"):
            if self._handles:
                values = tf.raw_ops.Unstage(dtypes=self._types, shared_name=self._values)
                for handle, value in zip(self._handles, values, strict=True):
                    local_state.assign(handle, value)
            count = int(tf.raw_ops.StageSize(dtypes=self._leaves, shared_name=self._batches))
            found = [tf.raw_ops.Unstage(dtypes=self._leaves, shared_name=self._batches) for _ in range(count)]
        self.end()
        return [self._packed(tensors) for tensors in found]

    def _packed(self, tensors: Sequence[Any]) -> Any:
        left = iter(tensors)

        def pack(leaf: Any) -> Any:
            if leaf is None:
                return None
            parts = [next(left) for _ in tf.nest.flatten(leaf, expand_composites=True)]
            return tf.nest.pack_sequence_as(leaf, parts, expand_composites=True)

        return tf.nest.map_structure(pack, self._spec)


class EagerUndo:
    """Undoes a call that runs eagerly. ``data``: the batches that it reads, by iterating over this object."""

    effect = "what a step does besides writing variables"

    def __init__(self, handles: Sequence[Any], data: Iterator[Any]) -> None:
        self._before = StateSnapshot([], handles)
        self._read: list[Any] = []
        self._data = data

    def __iter__(self) -> Iterator[Any]:
        for batch in self._data:
            self._read.append(batch)
            yield batch

    def take_back(self) -> list[Any]:
        """Restores every value to that before the call; returns the batches that it read."""
        self._before.restore()
        return self._read


def handles_of(model: Any, step: Any = None) -> list[Any]:
    """Handles of metrics' variables, and of those that a traced step writes, or an eager one may write."""
    every = [] if step else model_state.variables(model)
    values = local_state.values_of([*every, *local_state.metric_variables(model)])
    found = [*(local_state.written_handles(step.graph) if step else ()), *(each.handle for each in values)]
    return [handle for handle in {id(each): each for each in found}.values() if local_state.is_number(handle)]


def _tensors(batch: Any) -> list[Any]:
    return [leaf for leaf in tf.nest.flatten(batch, expand_composites=True) if leaf is not None]
