"""The values of all that traced steps write, so that steps can be tried and taken back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras.local_state import written_handles


class StateSnapshot:
    """Copies in this process's memory, not on a GPU. Taken by handles, whoever made the variables."""

    def __init__(self, graphs: Iterable[Any]) -> None:
        """Raises ValueError where a graph writes what is no variable (a lookup table, say)."""
        handles = {id(handle): handle for graph in graphs for handle in written_handles(graph)}
        self._values = [(handle, _read(handle)) for handle in handles.values()]

    def restore(self) -> None:
        for handle, value in self._values:
            with tf.device(handle.device):
                tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(value))


def _read(handle: Any) -> Any:
    dtype = private.variable_dtype(handle)
    with tf.device(handle.device):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype).numpy()
