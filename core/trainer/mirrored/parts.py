"""This member's part of a script's data, where it distributes datasets by hand.

Batches are cut as TensorFlow cuts them for one machine's devices, so that a loop trains on the same rows:
every member reads the whole data and takes its part of each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from core.trainer.exact.members import step as steps


def of_each_batch(dataset: Any, rank: int, members: int) -> Any:
    """A dataset with this member's rows of each global batch. All members get the same number of elements.

    Each batch is cut into parts of equal size, rounded up: the last ones may have fewer rows, or none.

    Raises ``ValueError`` for a dataset without batches.
    """
    specs = tf.nest.flatten(dataset.element_spec)
    if not any(getattr(spec, "shape", None) is None or spec.shape.rank != 0 for spec in specs):
        raise ValueError(
            f"Call the `batch` method on the dataset: its rows are to be split across {members} replicas."
        )
    known = all(spec.shape.rank and spec.shape[0] is not None for spec in specs)

    def part(*element: Any) -> Any:
        batch = tf.nest.pack_sequence_as(dataset.element_spec, tf.nest.flatten(element))
        rows = specs[0].shape[0] if known else steps.rows_of(batch)
        most = -(-rows // members)
        places = (rank * most, (rank + 1) * most)
        begin, end = (min(rows, place) if known else tf.minimum(rows, place) for place in places)
        return steps.take_rows(batch, begin, end)

    options = tf.data.Options()
    options.deterministic = True  # members read the same batches in the same order
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.map(part).prefetch(1).with_options(options)


class PipelineContext(tf.distribute.InputContext):
    """The context for a function that makes a dataset; records whether it asked which pipeline it is."""

    __slots__ = ("asked",)

    def __init__(self, pipelines: int, pipeline: int, replicas: int) -> None:
        super().__init__(pipelines, pipeline, replicas)
        self.asked = False

    @property
    def input_pipeline_id(self) -> int:
        self.asked = True
        return int(super().input_pipeline_id)


def dealt(dataset_fn: Callable[[Any], Any], rank: int, members: int) -> Callable[[PipelineContext], Any]:
    """Wraps ``dataset_fn``, which makes a pipeline of batches for one replica.

    If it ignores its pipeline's number, all members get the same pipeline, and its batches are dealt out in
    turn, as to the devices of one machine.
    """

    def made(context: PipelineContext) -> Any:
        dataset = dataset_fn(context)
        return dataset if context.asked else dataset.shard(members, rank)

    return made
