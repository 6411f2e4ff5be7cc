"""Indivisible work is completed by all present members, or rolled back: the remaining members end with the
same result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.exchange.driver import Exchange
from core.exchange.problems import ExchangeFailed
from core.exchange.state import Key
from core.vocabulary.errors import Problem
from tests.core.exchange.members import meeting

pytestmark = pytest.mark.cluster


class Beside:
    """Runs something in another thread; ``result`` waits for its return value."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self._found: list[Any] = []

        def keep() -> None:
            try:
                self._found.append(run())
            except Exception as error:
                self._found.append(error)

        self._thread = threading.Thread(target=keep)
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(15.0)
        assert self._found, "it is still under way"
        return self._found[0]


def wait_until_asked(exchange: Exchange) -> None:
    until_s = time.monotonic() + 10.0
    while not exchange.waiting():
        assert time.monotonic() < until_s, "nobody waits"
        time.sleep(0.005)


def sums(exchange: Exchange, stage: int, value: float) -> float:
    """A member without TensorFlow takes part in a stage of the first generation."""
    key = Key(0, 0, stage, 0)
    exchange.hand_over(key, np.full(3, value, np.float32), label="numbers")
    return float(exchange.wait([key])[0][0])


def test_a_graph_of_two_stages_is_interrupted_and_repeated_alone(tmp_path: Path) -> None:
    import tensorflow as tf

    from core.trainer.exact.members.collectives import LeftMidway
    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    with meeting(tmp_path, 2) as (one, second):
        collectives = ExchangeCollectives(one)
        weights = tf.Variable(tf.zeros(3))

        def two_stages() -> Any:
            first = collectives.sum(tf.ones(3))
            return weights.assign_add(collectives.sum(first * 2.0))

        step = tf.function(two_stages)

        def value() -> float:
            return float(collectives.atomically(step)[0])

        first = Beside(lambda: (sums(second, 0, 5.0), sums(second, 1, 7.0)))
        assert value() == 19.0 and first.result() == (6.0, 19.0)

        def leaves() -> None:
            assert sums(second, 2, 5.0) == 6.0
            wait_until_asked(one)
            one.regroup(1, 0, [1])

        leaving = Beside(leaves)
        with pytest.raises(LeftMidway):
            value()
        leaving.result()
        assert collectives.failure is None and collectives.present == (0,)
        assert weights.numpy().tolist() == [19.0] * 3, "nothing of the second stage was applied"
        assert value() == 19.0 + 2.0 and collectives.met == (0,)
        assert collectives.sum(tf.ones(3)).numpy().tolist() == [1.0] * 3, "outside of it, alike"
        assert collectives.gather_bytes(b"alone") == [b"alone"]
        assert collectives.gather_ints([3, 4]) == [[3, 4]]


@pytest.mark.parametrize("kind", ["sum", "gather"])
def test_a_member_that_is_behind_gets_the_result_to_which_a_departed_one_contributed(
    tmp_path: Path, kind: str
) -> None:
    """The first completed a stage with all, the second did not, when the third leaves: then both continue."""
    import tensorflow as tf

    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    with meeting(tmp_path, 3) as exchanges:
        one, second, third = exchanges
        members = [ExchangeCollectives(each) for each in exchanges]
        for each in members:
            each.names = ("anna", "ben", "cleo")
        channel = third._channels[1]
        send, lost = channel.send, "part" if kind == "gather" else "total"
        # The third's data for the second is never sent.
        channel.send = lambda key, phase, *rest: None if phase == lost else send(key, phase, *rest)  # type: ignore[method-assign]

        def meets(rank: int) -> Any:
            number = float(rank + 1)
            if kind == "gather":
                return members[rank].gather(tf.fill([rank + 1], number)).numpy().tolist()
            pair = members[rank].sum([tf.fill([2], number), tf.fill([7], 10 * number)])
            return [each.numpy().tolist() for each in pair]

        ahead, behind = Beside(lambda: (meets(0), meets(0))), Beside(lambda: (meets(1), meets(1)))
        gone = Beside(lambda: meets(2))
        until_s = time.monotonic() + 10.0
        while one.ended == 0:
            assert time.monotonic() < until_s
            time.sleep(0.005)
        wait_until_asked(one)
        assert second.ended == 0
        one.regroup(1, 0, [2])
        second.regroup(1, 0, [2])
        whole, rest = [[6.0] * 2, [60.0] * 7], [[3.0] * 2, [30.0] * 7]
        if kind == "gather":
            whole, rest = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0], [1.0, 2.0, 2.0]  # type: ignore[list-item]
        assert ahead.result() == (whole, rest)
        assert behind.result() == (whole, rest)
        assert [each.present for each in members[:2]] == [(0, 1)] * 2
        third.close(Problem(code="done", what="It has ended."))
        gone.result()


def test_a_graph_that_cannot_be_undone_ends_with_a_reason(tmp_path: Path) -> None:
    import tensorflow as tf

    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    with meeting(tmp_path, 2) as (one, _):
        collectives = ExchangeCollectives(one)
        collectives.names = ("anna", "ben")
        step = tf.function(lambda: collectives.sum(tf.ones(3)))
        running = Beside(step)
        wait_until_asked(one)
        one.regroup(1, 0, [1])
        assert isinstance(running.result(), tf.errors.OpError)
        assert isinstance(collectives.failure, ExchangeFailed)
        assert collectives.failure.code == "cannot-go-on" and "ben left the run" in collectives.failure.what
