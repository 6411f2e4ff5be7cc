"""Members that meet over real TLS on loopback: sums and gathers, cuts, mismatches, and ends."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest

from core.exchange import problems
from core.exchange.driver import Exchange, Peer
from core.exchange.problems import ExchangeFailed
from core.exchange.state import Key, Limits, Waiting, Wire
from core.vocabulary.errors import Problem
from tests.core.exchange.members import (
    DONE,
    Way,
    address,
    identities,
    keyring,
    keys_of,
    listener,
    meeting,
    numbers,
    rank_order_sum,
    same_bits,
    together,
)

pytestmark = pytest.mark.real

STOPPED = Problem(code="stopped", what="Ben pressed Stop.", fix="Train again.")
LIMIT_S = 20.0


def summed(exchange: Exchange, step: int, elements: int, packs: int = 1, wire: Wire = "f32") -> list[bytes]:
    keys = keys_of(step, packs)
    for key in keys:
        exchange.hand_over(key, numbers(exchange.rank, elements, key.pack), wire=wire)
    return [total.tobytes() for total in exchange.wait(keys)]


def all_summed(exchanges: list[Exchange], step: int, elements: int, packs: int = 1) -> list[list[bytes]]:
    return together(lambda exchange: summed(exchange, step, elements, packs), exchanges)


def expected(members: int, elements: int, packs: int = 1) -> list[bytes]:
    return [
        rank_order_sum([numbers(rank, elements, pack) for rank in range(members)]).tobytes()
        for pack in range(packs)
    ]


def wait_until(holds: Callable[[], object]) -> None:
    until_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until_s, "it never came to be"
        time.sleep(0.01)


@pytest.mark.parametrize("members", [1, 2, 3, 4])
@pytest.mark.parametrize("elements", [0, 1, 38_000, 500_001])
def test_all_members_have_the_sum_in_rank_order_bit_by_bit(
    tmp_path: Path, members: int, elements: int
) -> None:
    with meeting(tmp_path, members) as exchanges:
        for step in range(3):
            sums = all_summed(exchanges, step, elements, 3)
            assert sums == [expected(members, elements, 3)] * members


@pytest.mark.parametrize("wire", ["bf16", "fp16"])
@pytest.mark.parametrize("members", [2, 3])
def test_narrowed_sums_are_the_same_bits_on_all_and_near_the_true_sum(
    tmp_path: Path, members: int, wire: Wire
) -> None:
    own = [np.random.default_rng(rank).standard_normal(200_003).astype(np.float32) for rank in range(members)]

    def meet(exchange: Exchange) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        exchange.hand_over(Key(0, 0, 0, 0), own[exchange.rank], wire=wire)
        total: np.ndarray[tuple[int], np.dtype[np.float32]] = exchange.wait([Key(0, 0, 0, 0)])[0]
        return total

    with meeting(tmp_path, members) as exchanges:
        sums = together(meet, exchanges)
    assert all(same_bits(total, sums[0]) for total in sums)
    error = np.abs(sums[0] - rank_order_sum(own)).max()
    assert 0 < error < {"bf16": 0.1, "fp16": 0.02}[wire]


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "complex64", "float16", "bool"])
def test_other_types_pass_as_they_are(tmp_path: Path, dtype: str) -> None:
    own = [np.arange(6).reshape(2, 3).astype(dtype) + np.ones((), dtype) * rank for rank in range(2)]
    own = [each.astype(dtype) for each in own]

    def meet(exchange: Exchange) -> bool:
        exchange.hand_over(Key(0, 0, 0, 0), own[exchange.rank], wire="bf16")
        return same_bits(exchange.wait([Key(0, 0, 0, 0)])[0], own[0] + own[1])

    with meeting(tmp_path, 2) as exchanges:
        assert together(meet, exchanges) == [True, True]


def test_sparse_gradients_are_gathered_as_indices_and_values(tmp_path: Path) -> None:
    indices = [np.array([3, 1], np.int64), np.array([], np.int64), np.array([1], np.int64)]
    values = [np.full((len(each), 4), rank, np.float32) for rank, each in enumerate(indices)]

    def meet(exchange: Exchange) -> tuple[list[list[int]], list[float]]:
        all_indices = exchange.gather(Key(0, 0, 0, 0), indices[exchange.rank])
        all_values = exchange.gather(Key(0, 0, 0, 1), values[exchange.rank])
        return [each.tolist() for each in all_indices], np.concatenate(all_values)[:, 0].tolist()

    with meeting(tmp_path, 3) as exchanges:
        assert together(meet, exchanges) == [([[3, 1], [], [1]], [0.0, 0.0, 2.0])] * 3


def test_packs_may_be_handed_over_in_another_order_on_each_member(tmp_path: Path) -> None:
    def meet(exchange: Exchange) -> list[bytes]:
        keys = keys_of(0, 5)
        for key in keys if exchange.rank else reversed(keys):
            exchange.hand_over(key, numbers(exchange.rank, 1000, key.pack))
        return [total.tobytes() for total in exchange.wait(keys)]

    with meeting(tmp_path, 2) as exchanges:
        assert together(meet, exchanges) == [expected(2, 1000, 5)] * 2


def test_nothing_is_kept_of_steps_that_are_over(tmp_path: Path) -> None:
    process = psutil.Process()
    with meeting(tmp_path, 3) as exchanges:

        def steps(begin: int) -> int:
            for step in range(begin, begin + 100):
                all_summed(exchanges, step, 100_000, 2)
            gc.collect()
            return process.memory_info().rss

        before, after = steps(0), steps(100)
        assert after - before < 20 * 2**20, "200 steps' sums would be 480 MB"
        for exchange in exchanges:
            assert not exchange._packs
            assert not exchange._over
            assert not exchange._state.meetings
            assert len(exchange._state.taken) <= 4
        wait_until(lambda: all(each.is_idle for each in exchanges))


def test_a_peer_that_is_far_ahead_waits_on_the_way_instead_of_filling_memory(tmp_path: Path) -> None:
    elements, packs = 100_000, 8
    with meeting(tmp_path, 2, limits=Limits(early_bytes=1_000_000)) as exchanges:
        ahead, behind = exchanges
        keys = keys_of(0, packs)
        for key in keys:
            ahead.hand_over(key, numbers(0, elements, key.pack))
        wait_until(lambda: len(behind._packs) == 2)
        time.sleep(0.5)
        assert sum(pack.early_bytes() for pack in behind._packs.values()) == 2 * 4 * elements
        sums = together(
            lambda each: summed(each, 0, elements, packs) if each is behind else each.wait(keys), exchanges
        )
        assert sums[1] == expected(2, elements, packs)


def test_a_connection_that_is_cut_in_the_middle_goes_on_with_the_same_result(tmp_path: Path) -> None:
    ways: list[Way] = []

    def reach(rank: int, other: int, address: tuple[str, int]) -> tuple[str, int]:
        ways.append(Way(address))
        return ways[-1].address

    elements, packs = 1_000_000, 4
    with meeting(tmp_path, 2, reach) as exchanges:
        all_summed(exchanges, 0, 10)
        for step in range(1, 4):
            before = sum(way.passed for way in ways)
            for way in ways:
                way.cut_after = way.passed + 3_000_000 * step
            cuts = sum(way.cuts for way in ways)
            sums = all_summed(exchanges, step, elements, packs)
            assert sums == [expected(2, elements, packs)] * 2
            assert sum(way.cuts for way in ways) > cuts, "the connection was cut in this step"
            passed = sum(way.passed for way in ways) - before
            whole = 2 * packs * elements * 4
            assert whole < passed < 1.25 * whole, "not everything was sent again"
    for way in ways:
        way.close()


def test_three_members_go_on_after_cuts_at_any_time(tmp_path: Path) -> None:
    ways: list[Way] = []

    def reach(rank: int, other: int, address: tuple[str, int]) -> tuple[str, int]:
        ways.append(Way(address))
        return ways[-1].address

    stop = threading.Event()

    def cut() -> None:
        turn = 0
        while not stop.wait(0.05):
            ways[turn % len(ways)].cut()
            turn += 1

    with meeting(tmp_path, 3, reach) as exchanges:
        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            for step in range(20):
                sums = all_summed(exchanges, step, 60_000, 3)
                assert sums == [expected(3, 60_000, 3)] * 3
        finally:
            stop.set()
            cutter.join()
    assert sum(way.cuts for way in ways) >= 5
    for way in ways:
        way.close()


def session_number(exchange: Exchange) -> int:
    """Of the one that it has with its only peer."""
    [peer] = exchange.peers()
    return peer.session


def test_a_worn_session_is_replaced_while_the_steps_go_on(tmp_path: Path) -> None:
    """One key must not encrypt too much."""
    with meeting(tmp_path, 2, limits=Limits(worn_bytes=4_000_000, silent_s=1.0)) as exchanges:
        step = 0
        while session_number(exchanges[0]) < 3:
            sums = all_summed(exchanges, step, 300_000, 2)
            assert sums == [expected(2, 300_000, 2)] * 2
            step += 1
            assert step < 5_000
        assert step > 3, "not with each step"


def test_a_session_is_worn_by_what_comes_over_it_too(tmp_path: Path) -> None:
    """The peer that sends most of it can't call: who can has to see that its key is worn."""

    def reach(rank: int, other: int, address: tuple[str, int]) -> tuple[str, int] | None:
        return address if rank == 0 else None

    rows = [np.zeros((1, 4), np.float32), np.zeros((100_000, 4), np.float32)]
    with meeting(tmp_path, 2, reach, limits=Limits(worn_bytes=4_000_000, silent_s=1.0)) as exchanges:
        until_s, step = time.monotonic() + LIMIT_S, 0
        while session_number(exchanges[0]) < 2:
            assert time.monotonic() < until_s, "it was never replaced"
            for exchange in exchanges:
                exchange.hand_over(Key(0, 0, step, 0), rows[exchange.rank], kind="gather")
            for exchange in exchanges:
                exchange.wait([Key(0, 0, step, 0)])
            step += 1
        assert step > 1


@pytest.mark.parametrize("caller", [0, 1])
@pytest.mark.parametrize("is_known", [True, False], ids=["refused", "no address"])
def test_one_open_firewall_is_enough(tmp_path: Path, caller: int, is_known: bool) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        shut = taken.getsockname()
    # Nobody listens there any more: whoever calls it is refused.

    def reach(rank: int, other: int, address: tuple[str, int]) -> tuple[str, int] | None:
        if rank == caller:
            return address
        return shut if is_known else None

    with meeting(tmp_path, 2, reach) as exchanges:
        for step in range(3):
            sums = all_summed(exchanges, step, 1000)
            assert sums == [expected(2, 1000)] * 2


def test_a_mismatch_is_named_on_both_sides_instead_of_a_hang(tmp_path: Path) -> None:
    def meet(exchange: Exchange) -> Problem:
        shape = (3, 4) if exchange.rank else (12,)
        exchange.hand_over(Key(0, 0, 0, 0), np.zeros(shape, np.float32), word="gradients")
        with pytest.raises(ExchangeFailed) as failure:
            exchange.wait([Key(0, 0, 0, 0)])
        return failure.value.problem

    with meeting(tmp_path, 2) as exchanges:
        found = together(meet, exchanges)
    assert found[0] == found[1]
    assert found[0].code == problems.MISMATCH
    assert "member 0 wants gradients (sum of float32 [12]); member 1 wants" in found[0].what
    assert "member 1 wants gradients (sum of float32 [3, 4])." in found[0].what


def test_a_large_mismatch_that_comes_in_the_middle_of_the_others_is_named(tmp_path: Path) -> None:
    """The other's numbers are still coming, by the million, when this member says what it wants."""

    def meet(exchange: Exchange) -> str:
        time.sleep(0.01 * exchange.rank)
        exchange.hand_over(Key(0, 0, 0, 0), np.zeros(8_000_000 - exchange.rank * 7_000_000, np.float32))
        with pytest.raises(ExchangeFailed) as failure:
            exchange.wait([Key(0, 0, 0, 0)])
        return failure.value.code

    for number in range(5):
        with meeting(tmp_path / str(number), 2) as exchanges:
            assert together(meet, exchanges) == [problems.MISMATCH] * 2


def test_closing_one_that_was_never_started_is_no_error(tmp_path: Path) -> None:
    of = identities(tmp_path, 2)
    with closing(listener()) as sock:
        Exchange(0, [Peer(1, None)], keyring(of, 0), "run", sock).close(DONE)
        assert sock.fileno() == -1


def test_closing_ends_waits_at_once_on_both_sides_and_says_why(tmp_path: Path) -> None:
    with meeting(tmp_path, 2) as exchanges:
        all_summed(exchanges, 0, 10)
        one, other = exchanges
        failures: list[tuple[int, ExchangeFailed, float]] = []

        def wait(exchange: Exchange, key: Key) -> None:
            exchange.hand_over(key, numbers(0, 10))
            try:
                exchange.wait([key])
            except ExchangeFailed as failure:
                failures.append((exchange.rank, failure, time.monotonic()))

        threads = [
            threading.Thread(target=wait, args=(exchange, Key(0, 0, 1, exchange.rank)))
            for exchange in exchanges
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: one.waiting() and other.waiting())
        began_s = time.monotonic()
        one.close(STOPPED)
        assert time.monotonic() - began_s < 1.0
        for thread in threads:
            thread.join(LIMIT_S)
    by_rank = {rank: (failure, at_s - began_s) for rank, failure, at_s in failures}
    assert by_rank[0][0].problem == STOPPED
    assert by_rank[1][0].code == problems.LEFT
    assert "member 0 has left: Ben pressed Stop." in str(by_rank[1][0])
    assert all(after_s < 1.0 for _, after_s in by_rank.values())


def test_nothing_waits_after_close(tmp_path: Path) -> None:
    with meeting(tmp_path, 2) as exchanges:
        exchanges[0].close(STOPPED)
        exchanges[0].close(DONE)
        exchanges[0].hand_over(Key(0, 0, 0, 0), numbers(0, 3))
        with pytest.raises(ExchangeFailed) as failure:
            exchanges[0].wait([Key(0, 0, 0, 0)])
        assert failure.value.problem == STOPPED


def test_a_member_that_closes_after_its_last_step_still_sends_what_the_other_lacks(tmp_path: Path) -> None:
    elements = 3_000_000

    def meet(exchange: Exchange) -> bytes:
        [total] = summed(exchange, 0, elements)
        exchange.close(DONE, linger_s=10.0)
        return total

    with meeting(tmp_path, 3) as exchanges:
        began_s = time.monotonic()
        assert together(meet, exchanges) == expected(3, elements) * 3
        assert time.monotonic() - began_s < 8.0, "nobody lingered without a need"


def test_waiting_for_what_nobody_handed_over_is_an_error(tmp_path: Path) -> None:
    with meeting(tmp_path, 2) as exchanges, pytest.raises(KeyError):
        exchanges[0].wait([Key(0, 0, 0, 0)])


def test_regrouping_ends_the_wait_for_an_old_attempt_and_the_step_is_met_again(tmp_path: Path) -> None:
    with meeting(tmp_path, 2) as exchanges:
        one, other = exchanges
        one.hand_over(Key(0, 0, 5, 0), numbers(0, 100_000))
        failure: list[str] = []

        def wait() -> None:
            try:
                one.wait([Key(0, 0, 5, 0)])
            except ExchangeFailed as error:
                failure.append(error.code)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(one.waiting)
        for exchange in exchanges:
            exchange.regroup(0, 1)
        thread.join(LIMIT_S)
        assert failure == [problems.OLD]

        def again(exchange: Exchange) -> bytes:
            key = Key(0, 1, 5, 0)
            exchange.hand_over(key, numbers(exchange.rank, 100_000))
            total: bytes = exchange.wait([key])[0].tobytes()
            return total

        assert together(again, exchanges) == expected(2, 100_000) * 2
        assert not other._packs, "what came of the old attempt is gone"


def test_who_is_waited_for_can_be_read_meanwhile(tmp_path: Path) -> None:
    ways: list[Way] = []

    def reach(rank: int, other: int, address: tuple[str, int]) -> tuple[str, int]:
        ways.append(Way(address))
        return ways[-1].address

    elements = 100_000
    with meeting(tmp_path, 3, reach) as exchanges:
        all_summed(exchanges, 0, 10)
        assert exchanges[0].waiting() == []
        keys = keys_of(1, 2)
        for exchange in exchanges[:2]:
            for key in keys[: 2 - exchange.rank]:
                exchange.hand_over(key, numbers(exchange.rank, elements, key.pack))

        def wait() -> None:
            with pytest.raises(ExchangeFailed):
                exchanges[0].wait(keys)

        thread = threading.Thread(target=wait)
        thread.start()

        def from_one() -> int:
            return next((each.bytes_come for each in exchanges[0].waiting() if each.rank == 1), 0)

        wait_until(lambda: from_one() > 0)
        time.sleep(0.3)
        first, second = exchanges[0].waiting()
        part = elements // 3 * 4
        assert (first.rank, first.bytes_come, first.connection) == (1, part, "connected")
        assert 4 * part <= first.bytes_total <= 4 * part + 32
        assert (second.rank, second.bytes_come, second.connection) == (2, 0, "connected")
        assert 0.3 <= first.since_s < LIMIT_S
        assert first.heard_s < 3.0
        again: list[Waiting] = exchanges[0].waiting()
        assert all(a.since_s < b.since_s for a, b in pairwise([first, again[0]]))
        exchanges[2].close(STOPPED)
        wait_until(lambda: not exchanges[0].waiting())
        thread.join(LIMIT_S)
    for way in ways:
        way.close()


def test_a_member_that_never_comes_is_said_to_be_called(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        shut = taken.getsockname()
    with meeting(tmp_path, 2, lambda *_: shut) as exchanges:
        exchanges[0].hand_over(Key(0, 0, 0, 0), numbers(0, 3))

        def wait() -> None:
            with pytest.raises(ExchangeFailed):
                exchanges[0].wait([Key(0, 0, 0, 0)])

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(exchanges[0].waiting)
        assert [each.connection for each in exchanges[0].waiting()] == ["dialling"]
        exchanges[0].close(STOPPED)
        thread.join(LIMIT_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("is_full", [False, True], ids=["handshake", "connect"])
def test_closing_does_not_wait_for_a_call_that_nobody_answers(tmp_path: Path, is_full: bool) -> None:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as deaf, ExitStack() as stack:
        # With its queue full, it does not even answer the first packet.
        for _ in range(4 if is_full else 0):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address(deaf))
        with meeting(tmp_path, 2, lambda *_: address(deaf)) as exchanges:
            time.sleep(0.6)
            assert {peer.connection for each in exchanges for peer in each.peers()} == {"dialling"}
            began_s = time.monotonic()
            together(lambda exchange: exchange.close(STOPPED), exchanges)
            assert time.monotonic() - began_s < 2.0


def test_signs_of_life_come_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    with meeting(tmp_path, 2, limits=Limits(alive_s=0.3)) as exchanges:
        all_summed(exchanges, 0, 10)
        heard = []
        for _ in range(20):
            heard.append(exchanges[0].peers()[0].heard_s)
            time.sleep(0.05)
        assert max(heard) < 0.8
        assert any(late < early for early, late in pairwise(heard)), "it was heard again meanwhile"


def test_silence_is_known_and_ends_nothing(tmp_path: Path) -> None:
    """Without signs of life another session is tried."""
    with meeting(tmp_path, 2, limits=Limits(alive_s=60.0, silent_s=0.3)) as exchanges:
        all_summed(exchanges, 0, 10)
        number = session_number(exchanges[0])
        wait_until(lambda: session_number(exchanges[0]) > number)
        assert all_summed(exchanges, 1, 10) == [expected(2, 10)] * 2


def test_no_thread_and_no_socket_stays_after_close(tmp_path: Path) -> None:
    threads, sockets = threading.active_count(), psutil.Process().num_fds()
    with meeting(tmp_path, 3) as exchanges:
        all_summed(exchanges, 0, 100_000)
        assert threading.active_count() > threads
        together(lambda exchange: exchange.close(DONE), exchanges)
        assert threading.active_count() == threads
    assert psutil.Process().num_fds() == sockets
