"""A step of which the members regroup is not applied, and is met again with the same result."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.exchange.driver import Exchange
from core.exchange.state import Key
from tests.core.exchange.members import meeting

pytestmark = pytest.mark.cluster


class Other:
    """The second member, without TensorFlow: what it hands over, stage by stage."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def sums(self, attempt: int, stage: int, value: float) -> float:
        key = Key(0, attempt, stage, 0)
        self._exchange.hand_over(key, np.full(3, value, np.float32), word="numbers")
        return float(self._exchange.wait([key])[0][0])


def wait_until_asked(exchange: Exchange) -> None:
    until_s = time.monotonic() + 60.0
    while not exchange.waiting():
        assert time.monotonic() < until_s, "nobody waits"
        time.sleep(0.005)


def test_nothing_of_a_step_that_is_not_whole_is_applied_and_it_is_met_again(tmp_path: Path) -> None:
    import tensorflow as tf

    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    with meeting(tmp_path, 2) as (one, second):
        collectives, other = ExchangeCollectives(one), Other(second)
        weights = tf.Variable(tf.zeros(3))

        def two_stages() -> tuple[Any, Any]:
            """Of two stages, whose sums the weights are moved by."""
            first = collectives.sum(tf.ones(3))
            moved = collectives.sum(first * 2.0)
            whole = collectives.whole
            tf.cond(whole, lambda: weights.assign_add(moved), lambda: tf.identity(weights))
            return moved, whole

        step = tf.function(two_stages)

        def regroup() -> None:
            """In the step's second stage: the first has been met."""
            assert other.sums(0, 2, 5.0) == 6.0
            wait_until_asked(one)
            for exchange in (one, second):
                exchange.regroup(0, 1)

        def meets(attempt: int, stage: int, summed: float) -> None:
            assert other.sums(attempt, stage, 5.0) == 6.0
            assert other.sums(attempt, stage + 1, summed) == 12.0 + summed

        def beside(act: Any, *values: Any) -> tuple[float, bool]:
            thread = threading.Thread(target=act, args=values)
            thread.start()
            moved, whole = step()
            thread.join()
            return float(moved[0]), bool(whole)

        collectives.begin_step()
        assert beside(meets, 0, 0, 7.0) == (19.0, True)
        assert weights.numpy().tolist() == [19.0] * 3
        collectives.begin_step()
        assert collectives.step == Key(0, 0, 2, 0)
        moved, whole = beside(regroup)
        assert (moved, whole) == (0.0, False)
        assert weights.numpy().tolist() == [19.0] * 3, "nothing of it was applied"
        assert collectives.failure is None
        collectives.begin_again(0, 1)
        assert collectives.step == Key(0, 1, 2, 0)
        assert beside(meets, 1, 2, 8.0) == (20.0, True)
        assert weights.numpy().tolist() == [39.0] * 3
        collectives.begin_step()
        assert collectives.step == Key(0, 1, 4, 0)


def test_a_step_given_up_in_its_first_stage_is_not_whole_in_its_later_ones(tmp_path: Path) -> None:
    import tensorflow as tf

    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    with meeting(tmp_path, 2) as (one, second):
        collectives = ExchangeCollectives(one)
        for exchange in (one, second):
            exchange.regroup(0, 1)
        for stage in range(2):
            summed = collectives.sum(tf.ones(3))
            assert not bool(collectives.whole), stage
            assert summed.numpy().tolist() == [0.0] * 3
        rows = collectives.gather(tf.ones((2, 3)))
        assert not bool(collectives.whole) and rows.shape[1:] == (3,)
