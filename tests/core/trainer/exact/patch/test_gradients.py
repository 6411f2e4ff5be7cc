"""Which gradients travel together."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.cluster


def test_small_gradients_travel_together_and_large_ones_by_themselves_the_last_layers_first(tf: Any) -> None:
    """Backward, the gradients of the last layers are there first: their pack is the last of all."""
    from core.trainer.exact.patch.gradients import _PACK_ELEMENTS, _packs

    def grads(*sizes: int, dtype: Any = tf.float32) -> list[Any]:
        return [tf.TensorSpec([size], dtype) for size in sizes]

    large = _PACK_ELEMENTS
    assert _packs([]) == [] == _packs([None])
    assert _packs(grads(9, 3, 9, 3)) == [[3, 2, 1, 0]]
    assert _packs(grads(9, large, 9)) == [[2, 0], [1]]
    half = large // 2
    assert _packs(grads(3, half, half, 3, half)) == [[1, 0], [4, 3, 2]], "full as soon as it is that large"
    assert _packs([*grads(5, 5), *grads(5, dtype=tf.float16)]) == [[1, 0], [2]], "one type each"
    unknown = tf.TensorSpec([None], tf.float32)
    assert _packs([*grads(5), unknown, *grads(5)]) == [[2, 0], [1]], "of a size that only the step knows"


def test_sparse_gradients_are_in_no_pack(tf: Any) -> None:
    from core.trainer.exact.patch.gradients import _packs

    table = tf.IndexedSlices(tf.zeros([2, 4]), tf.constant([0, 1]), dense_shape=tf.constant([9, 4]))
    assert _packs([table, tf.zeros([3]), None, tf.zeros([4])]) == [[3, 1]]
