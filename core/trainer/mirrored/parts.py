"""Which part of a script's data is this member's, where it distributes datasets by hand.

As TensorFlow deals a batch to the devices of one machine, so that a loop trains on the same rows: every
member reads the whole data and takes its part of each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

from core.trainer.exact.members import step as steps


def of_each_batch(dataset: Any, rank: int, members: int) -> Any:
    """A dataset with this member's rows of each global batch, none at times; as many elements on each member.

    Raises ``ValueError`` for a dataset without batches.
    """
    specs = tf.nest.flatten(dataset.element_spec)
    if not any(getattr(spec, "shape", None) is None or spec.shape.rank != 0 for spec in specs):
        raise ValueError(
            f"Call the `batch` method on the dataset: its rows are to be split across {members} replicas."
        )
    batch = int(distribute.compute_batch_size(dataset))
    whole = all(spec.shape.rank and spec.shape[0] is not None for spec in specs)
    if batch > 0 and not whole:
        # As TensorFlow does: a short batch in the midst of a dataset is filled up with the rows that follow.
        dataset = dataset.rebatch(batch)

    def part(*element: Any) -> Any:
        taken = element if len(element) > 1 else element[0]
        if batch > 0:
            begin, end = (sum(_sizes(batch, members)[:each]) for each in (rank, rank + 1))
        if batch > 0 and whole:
            return steps.take_rows(taken, begin, end)
        rows = steps.rows_of(taken)
        if batch <= 0:
            most = -(-rows // members)
            begin, end = rank * most, (rank + 1) * most
        return steps.take_rows(taken, tf.minimum(rows, begin), tf.minimum(rows, end))

    options = tf.data.Options()
    options.deterministic = True  # members read the same batches in the same order
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.map(part).prefetch(1).with_options(options)


def _sizes(batch: int, members: int) -> list[int]:
    """Rows of each member's part; the first ones have one more where they cannot be equal."""
    return [batch // members + (rank < batch % members) for rank in range(members)]


class PipelineContext(tf.distribute.InputContext):
    """What a function that makes a dataset is told, and whether it asked which pipeline it is."""

    __slots__ = ("asked",)

    def __init__(self, pipelines: int, pipeline: int, replicas: int) -> None:
        super().__init__(pipelines, pipeline, replicas)
        self.asked = False

    @property
    def input_pipeline_id(self) -> int:
        self.asked = True
        return int(super().input_pipeline_id)


def dealt(dataset_fn: Callable[[Any], Any], rank: int, members: int) -> Callable[[PipelineContext], Any]:
    """``dataset_fn``, which makes a pipeline of batches for one replica.

    One that does not ask which of the pipelines it is makes the same for each member: then its batches are
    dealt out in turn, as to the devices of one machine.
    """

    def made(context: PipelineContext) -> Any:
        dataset = dataset_fn(context)
        return dataset if context.asked else dataset.shard(members, rank)

    return made
