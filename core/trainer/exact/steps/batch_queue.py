"""Feeds batches that were already read to calls that take an iterator, through one pipeline.

Building a pipeline for each call would take longer than its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact.steps.calibration import repeated
from core.trainer.exact.steps.data import untuned
from core.trainer.exact.steps.result import Batch, Spec


class BatchQueue:
    """A queue for batches of one kind, with any number of rows."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        leaves = tf.nest.flatten(spec)
        self._whole = all(isinstance(leaf, tf.TensorSpec) for leaf in leaves)
        if not self._whole:
            return  # A queue takes only tensors.
        self._queue = tf.queue.FIFOQueue(-1, [leaf.dtype for leaf in leaves])

        def next_batch(_: Any) -> Any:
            given = tf.nest.flatten(self._queue.dequeue())
            for tensor, leaf in zip(given, leaves, strict=True):
                tensor.set_shape(leaf.shape)
            return tf.nest.pack_sequence_as(spec, given)

        as_written = tf.autograph.experimental.do_not_convert(next_batch)
        self._iterator = iter(untuned(tf.data.Dataset.range(tf.int64.max).map(as_written)))

    def of(self, batches: Sequence[Batch]) -> Iterator[tuple[Any, int]]:
        """Iterators of `spec`'s type, each with the number of batches that it gives, in order."""
        if not self._whole:
            for batch in batches:
                yield repeated(batch, self._spec), 1
            return
        while self._queue.size() > 0:  # Left over from a failed step.
            self._queue.dequeue()
        for batch in batches:
            self._queue.enqueue(tf.nest.flatten(batch))
        if batches:
            yield self._iterator, len(batches)
