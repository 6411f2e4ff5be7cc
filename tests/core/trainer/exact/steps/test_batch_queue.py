"""Batches read in advance come out of one iterator, in order, in the form the steps were traced for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


def batch(tf: Any, rows: int, value: float) -> Any:
    return tf.fill([rows, 3], value), {"y": tf.fill([rows], value)}


def test_batches_of_any_rows_pass_one_pipeline_in_their_order(tf: Any) -> None:
    from core.trainer.exact.steps.batch_queue import BatchQueue

    spec = (tf.TensorSpec([None, 3]), {"y": tf.TensorSpec([None])})
    queue = BatchQueue(spec)
    ((iterator, count),) = queue.of([batch(tf, 4, 1.0), batch(tf, 2, 2.0)])
    found = [next(iterator) for _ in range(count)]
    assert [len(x) for x, _ in found] == [4, 2]
    assert [float(y["y"][0]) for _, y in found] == [1.0, 2.0]
    assert iterator.element_spec == spec
    ((again, _),) = queue.of([batch(tf, 1, 3.0)])
    assert again is iterator and not list(queue.of([]))


def test_what_a_failed_step_left_is_not_given_to_the_next(tf: Any) -> None:
    from core.trainer.exact.steps.batch_queue import BatchQueue

    queue = BatchQueue((tf.TensorSpec([None, 3]), {"y": tf.TensorSpec([None])}))
    list(queue.of([batch(tf, 4, 1.0)]))
    ((iterator, _),) = queue.of([batch(tf, 4, 2.0)])
    np.testing.assert_array_equal(next(iterator)[0], np.full([4, 3], 2.0))


def test_batches_that_are_not_tensors_pass_one_by_one(tf: Any) -> None:
    from core.trainer.exact.steps.batch_queue import BatchQueue

    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    given = list(BatchQueue(tf.RaggedTensorSpec([None, None])).of([ragged, ragged]))
    assert [count for _, count in given] == [1, 1]
    assert next(given[1][0]).to_list() == [[1.0, 2.0], [3.0]]


def test_pipelines_are_not_rewritten_by_autograph_which_would_delay_the_first_step(
    tf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorflow.python.autograph.impl import api

    from core.trainer.exact.steps.batch_queue import BatchQueue
    from core.trainer.exact.steps.calibration import repeated

    rewritten: list[Any] = []
    convert = api._convert_actual

    def record(entity: Any, context: Any) -> Any:
        rewritten.append(entity)
        return convert(entity, context)

    monkeypatch.setattr(api, "_convert_actual", record)
    spec = (tf.TensorSpec([None, 3]), {"y": tf.TensorSpec([None])})
    given = batch(tf, 4, 1.0)
    ((iterator, _),) = BatchQueue(spec).of([given])
    for each in (iterator, repeated(given, spec)):
        np.testing.assert_array_equal(next(each)[0], given[0])
    assert not rewritten
