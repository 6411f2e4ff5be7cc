"""A script's batches are split as TensorFlow's MirroredStrategy splits them for the devices of one machine.

The parts below are those that it gave to two and three logical devices (TensorFlow 2.21).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

Made = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("made", "members", "expected"),
    [
        (lambda r: r(15).batch(5), 2, [[[0, 1, 2], [3, 4]], [[5, 6, 7], [8, 9]], [[10, 11, 12], [13, 14]]]),
        (lambda r: r(11).batch(8), 3, [[[0, 1, 2], [3, 4, 5], [6, 7]], [[8], [9], [10]]]),
        (lambda r: r(4).batch(4), 3, [[[0, 1], [2, 3], []]]),
        (lambda r: r(5).batch(4), 3, [[[0, 1], [2, 3], []], [[4], [], []]]),
        (lambda r: r(9).batch(4, drop_remainder=True), 3, [[[0, 1], [2, 3], []], [[4, 5], [6, 7], []]]),
        (lambda r: r(3).batch(2).repeat(2), 2, [[[0], [1]], [[2], []], [[0], [1]], [[2], []]]),
    ],
)
def test_every_member_has_its_rows_of_each_batch(made: Made, members: int, expected: list[Any]) -> None:
    import tensorflow as tf

    from core.trainer.mirrored.parts import of_each_batch

    datasets = [of_each_batch(made(tf.data.Dataset.range), rank, members) for rank in range(members)]
    found = [[each.numpy().tolist() for each in batch] for batch in zip(*datasets, strict=True)]
    assert found == expected


def test_the_structure_of_a_batch_is_kept_and_one_without_rows_is_refused() -> None:
    import tensorflow as tf

    from core.trainer.mirrored.parts import of_each_batch

    whole = tf.data.Dataset.range(4)
    for structure in ((whole,), {"a": whole, "b": (whole, whole)}, (whole, {"c": whole})):
        dataset = tf.data.Dataset.zip(structure).batch(2)
        assert tf.nest.map_structure(
            lambda spec: spec.shape.rank, of_each_batch(dataset, 0, 2).element_spec
        ) == tf.nest.map_structure(lambda spec: spec.shape.rank, dataset.element_spec)
    with pytest.raises(ValueError, match="Call the `batch` method"):
        of_each_batch(whole, 0, 2)


def test_equal_pipelines_are_dealt_out_and_pipelines_by_number_are_used_unchanged() -> None:
    import tensorflow as tf

    from core.trainer.mirrored.parts import PipelineContext, dealt

    def alike(context: Any) -> Any:
        assert context.get_per_replica_batch_size(8) == 4
        return tf.data.Dataset.range(5)

    def own(context: Any) -> Any:
        return tf.data.Dataset.range(5).shard(context.num_input_pipelines, 1 - context.input_pipeline_id)

    for rank, dealt_out, taken in ((0, [0, 2, 4], [1, 3]), (1, [1, 3], [0, 2, 4])):
        for function, expected in ((alike, dealt_out), (own, taken)):
            dataset = dealt(function, rank, 2)(PipelineContext(2, rank, 2))
            assert [int(each) for each in dataset] == expected
