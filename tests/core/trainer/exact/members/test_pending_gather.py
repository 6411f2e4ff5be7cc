"""A gather that other meetings overlap: it gives all members the same, or none anything."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.exchange.driver import Exchange
from core.exchange.problems import ExchangeFailed
from core.exchange.state import Key
from core.vocabulary.errors import Problem
from tests.core.exchange.members import meeting
from tests.core.trainer.exact.members.test_chief_leaves import members
from tests.core.trainer.exact.members.test_whole_step import Beside, wait_until_asked

pytestmark = pytest.mark.cluster


def brought(rank: int) -> Any:
    return np.full(3, rank, np.uint8)


def begin(collectives: Any) -> Any:
    return collectives.begin_gather(brought(collectives.rank), "numbers")


def end(collectives: Any, begun: Any) -> Any:
    found = collectives.end_gather(begun, "an end")
    return found and [each.tolist() for each in found]


def brings(exchange: Exchange) -> None:
    """A member without TensorFlow takes part."""
    from core.trainer.exact.members.exchange_ops import _PENDING

    exchange.hand_over(Key(0, 0, 0, _PENDING), brought(exchange.rank), kind="gather", label="numbers")


def wait_until(has_come: Callable[[], Any]) -> None:
    until_s = time.monotonic() + 10.0
    while not has_come():
        assert time.monotonic() < until_s, "it has not come"
        time.sleep(0.005)


def lose_third(exchanges: Any) -> None:
    for exchange in exchanges[:2]:
        exchange.regroup(1, 0, [2])


def test_a_gather_ends_whatever_meetings_come_between(tmp_path: Path) -> None:
    def meet(collectives: Any) -> Any:
        begun = begin(collectives)
        between = [collectives.gather_ints([number]) for number in range(4)]
        return end(collectives, begun), between, end(collectives, begin(collectives))

    with meeting(tmp_path, 2) as exchanges:
        both = [Beside(partial(meet, each)) for each in members(exchanges)]
        all_brought = [[0] * 3, [1] * 3]
        expected = (all_brought, [[[number], [number]] for number in range(4)], all_brought)
        assert [each.result() for each in both] == [expected] * 2


def test_if_a_member_leaves_without_its_part_the_others_get_nothing(tmp_path: Path) -> None:
    with meeting(tmp_path, 3) as exchanges:
        first, second, _ = members(exchanges)
        ended = [Beside(partial(end, each, begin(each))) for each in (first, second)]
        for exchange in exchanges[:2]:
            wait_until_asked(exchange)
        lose_third(exchanges)
        assert [each.result() for each in ended] == [None, None]
        again = [Beside(partial(end, each, begin(each))) for each in (first, second)]
        assert [each.result() for each in again] == [[[0] * 3, [1] * 3]] * 2


def test_a_result_that_only_some_had_when_a_member_left_is_used_by_none(tmp_path: Path) -> None:
    with meeting(tmp_path, 3) as exchanges:
        first, second, _ = members(exchanges)
        begun = [begin(each) for each in (first, second)]
        brings(exchanges[2])
        had = Beside(lambda: second._exchange.wait([begun[1].key]))
        assert [each.tolist() for each in had.result()[0]] == [[0] * 3, [1] * 3, [2] * 3]
        second._exchange.wait = lambda keys, limit_s=None, wait=second._exchange.wait: (
            had.result() if keys == [begun[1].key] else wait(keys, limit_s)
        )
        lose_third(exchanges)
        ended = [Beside(partial(end, *each)) for each in zip((first, second), begun, strict=True)]
        assert [each.result() for each in ended] == [None, None]


def test_a_result_that_all_had_counts_though_a_member_has_left_since(tmp_path: Path) -> None:
    with meeting(tmp_path, 3) as exchanges:
        first, second, _ = members(exchanges)
        begun = [begin(each) for each in (first, second)]
        brings(exchanges[2])
        ended = [Beside(partial(end, *each)) for each in zip((first, second), begun, strict=True)]
        # The gather is over, and they wait for the third's word.
        wait_until(lambda: all(each._state.taken and each.waiting() for each in exchanges[:2]))
        lose_third(exchanges)
        assert [each.result() for each in ended] == [[[0] * 3, [1] * 3, [2] * 3]] * 2


@pytest.mark.parametrize("where", ["its end", "a stage before its end"])
def test_a_member_that_completes_the_last_stage_after_another_left_waits_for_nobody(
    tmp_path: Path, where: str
) -> None:
    def meet(collectives: Any) -> Any:
        words = collectives.gather_ints([collectives.rank])
        begun = begin(collectives)
        between = [collectives.gather_ints([7])] if where != "its end" else []
        ended = end(collectives, begun)
        return words, between, ended, end(collectives, begin(collectives))

    with meeting(tmp_path, 3) as exchanges:
        first, second, third = members(exchanges)
        lost, waits, wait = threading.Event(), itertools.count(), second._exchange.wait

        def late(keys: Any, limit_s: float | None = None) -> Any:
            """Waits for the first results only once the third has left."""
            assert next(waits) > 0 or lost.wait(10.0)
            return wait(keys, limit_s)

        second._exchange.wait = late
        ahead, behind = Beside(partial(meet, first)), Beside(partial(meet, second))
        Beside(lambda: third.gather_ints([2])).result()
        wait_until(lambda: first._stage == 1 and exchanges[0].waiting())
        lose_third(exchanges)
        lost.set()
        words, between = [[0], [1], [2]], [[[7], [7]]] if where != "its end" else []
        expected = (words, between, None, [[0] * 3, [1] * 3])
        assert [ahead.result(), behind.result()] == [expected] * 2


def test_a_gather_interrupted_by_an_error_ends_before_the_next_one_begins(tmp_path: Path) -> None:
    def meet(collectives: Any) -> Any:
        begin(collectives)  # and the script catches an error
        return end(collectives, begin(collectives))

    with meeting(tmp_path, 2) as exchanges:
        both = [Beside(partial(meet, each)) for each in members(exchanges)]
        assert [each.result() for each in both] == [[[0] * 3, [1] * 3]] * 2
        assert not any(exchange._packs for exchange in exchanges)


def test_the_end_of_the_exchange_ends_a_wait_for_it(tmp_path: Path) -> None:
    with meeting(tmp_path, 2) as exchanges:
        first, _ = members(exchanges)
        waits = Beside(partial(end, first, begin(first)))
        wait_until_asked(exchanges[0])
        exchanges[0].close(Problem(code="stopped", what="Stopped.", fix=""))
        assert isinstance(waits.result(), ExchangeFailed)
