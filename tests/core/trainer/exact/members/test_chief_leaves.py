"""The chief leaves: from then on its values come from the next member, and are never missing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.exchange.members import meeting
from tests.core.trainer.exact.members.test_whole_step import Beside, sums, wait_until_asked

pytestmark = pytest.mark.cluster


def members(exchanges: Any) -> Any:
    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    found = [ExchangeCollectives(each) for each in exchanges]
    for each in found:
        each.names = ("anna", "ben", "cleo")
    return found


def test_members_that_round_differently_get_the_present_chiefs_weights(tmp_path: Path) -> None:
    import keras

    from core.trainer.exact.keras import model_state

    models = [keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)]) for _ in range(3)]
    for rank, model in enumerate(models):
        model.set_weights([np.full((3, 2), 1.0 + rank * 1e-6), np.full(2, 2.0)])
    with meeting(tmp_path, 3) as exchanges:
        _, second, third = members(exchanges)
        for exchange in exchanges[1:]:
            exchange.regroup(1, 0, [0])
        settled = [
            Beside(partial(model_state.settle, model, each, "fit"))
            for each, model in zip((second, third), models[1:], strict=True)
        ]
        assert [each.result() for each in settled] == [True, True]
        assert second.is_chief and not third.is_chief
        first = np.full((3, 2), 1.0 + 1e-6, np.float32)
        for model in models[1:]:
            assert np.array_equal(model.get_weights()[0], first), "not zeros, and alike to the bit"


def test_a_chief_that_leaves_between_two_of_its_sums_has_given_nothing(tmp_path: Path) -> None:
    with meeting(tmp_path, 3) as exchanges:
        _, second, third = members(exchanges)
        given = [[np.full(3, rank, np.float32), np.full(2, rank, np.float32)] for rank in range(3)]
        taken = [
            Beside(partial(each.arrays_from_chief, given[each.rank], "numbers")) for each in (second, third)
        ]
        assert sums(exchanges[0], 0, 7.0) == 7.0, "the first sum was of all three"
        for exchange in exchanges[1:]:
            wait_until_asked(exchange)
            exchange.regroup(1, 0, [0])
        for each in taken:
            assert [array.tolist() for array in each.result()] == [[1.0] * 3, [1.0] * 2]


def test_bytes_come_from_the_next_chief_if_one_leaves_before_sending_them(tmp_path: Path) -> None:
    with meeting(tmp_path, 3) as exchanges:
        first, second, third = members(exchanges)
        taken = [
            Beside(partial(each.bytes_from_chief, b"of %d" % each.rank * 3**each.rank))
            for each in (second, third)
        ]
        told = first._gather_each(np.array([4], np.int64), "the chief's bytes")
        assert [int(size[0]) for _, size in told] == [4, 12, 36]
        for exchange in exchanges[1:]:
            wait_until_asked(exchange)
            exchange.regroup(1, 0, [0])
        assert [each.result() for each in taken] == [b"of 1" * 3] * 2
