"""A fit's data: rows from its middle, and its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def opened() -> Any:
    from core.trainer.exact.steps.data import SharedEpochIterator

    return lambda *data, **named: SharedEpochIterator(None, *data, **named)


def test_arrays_have_a_middle_in_the_form_of_a_batch(opened: Any) -> None:
    x, y = {"a": np.arange(20.0)[:, None], "b": np.arange(20)}, np.arange(20) % 3
    iterator = opened(x, y, batch_size=6, shuffle=True)
    batch = next(iterator.reopen())
    given, targets = iterator.middle(batch)
    np.testing.assert_array_equal(given["a"][:, 0], np.arange(10, 16))
    np.testing.assert_array_equal(given["b"], np.arange(10, 16))
    np.testing.assert_array_equal(targets, np.arange(10, 16) % 3)
    assert given["a"].dtype == batch[0]["a"].dtype == "float32"
    assert iterator.middle(opened(x, y, batch_size=15).reopen().get_next())[1].shape == (15,)


def test_other_data_has_no_middle(opened: Any) -> None:
    import tensorflow as tf

    iterator = opened(tf.data.Dataset.from_tensor_slices((np.ones([8, 2]), np.ones(8))).batch(4))
    assert iterator.middle(next(iterator.reopen())) is None


@pytest.mark.parametrize("named", [{}, {"steps_per_epoch": 4}])
def test_arrays_last_for_all_their_steps_so_the_first_steps_trace_serves_the_others(
    opened: Any, named: dict[str, int]
) -> None:
    iterator = opened(np.arange(20.0)[:, None], np.arange(20), batch_size=6, shuffle=True, **named)
    iterator.pace.measured(1e-4)
    for _ in range(3):
        portions = [item[2] for item in iterator if iterator.read(item)]
        assert sum(portion.done for portion in portions) == 4
        assert all(portion.sure and portion.done == portion.steps for portion in portions)


def test_data_that_ends_before_its_known_length_is_never_sure_and_its_end_is_found_once(opened: Any) -> None:
    import keras
    import tensorflow as tf

    class Shorter(keras.utils.PyDataset):  # type: ignore[misc]
        count = 10

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, index: int) -> Any:
            return np.ones([4, 2]), np.ones([4, 1])

    data = Shorter()
    iterator = opened(data)
    iterator.pace.measured(1e-4)  # four steps in a call
    data.count = 6
    done = []
    with pytest.warns(UserWarning, match="ran out of data"), iterator.catch_stop_iteration():
        for item in iterator:
            assert not item[2].sure
            done.append(iterator.read(item))
    assert done == [4, 2]
    known = opened(tf.data.Dataset.range(6).batch(2))
    assert next(iter(known))[2].sure
