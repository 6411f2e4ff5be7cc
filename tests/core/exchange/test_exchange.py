"""Members that connect over real TLS on loopback: sums and gathers, cuts, mismatches, and ends."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import psutil
import pytest

from core.exchange import problems
from core.exchange.driver import Exchange
from core.exchange.problems import ExchangeFailed
from core.exchange.state import LIMITS, Key, Limits, Peer, Wire
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
    together,
)

pytestmark = pytest.mark.real

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


def test_nothing_of_finished_steps_is_kept(tmp_path: Path) -> None:
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


def test_a_connection_cut_in_the_middle_gives_the_same_result(tmp_path: Path) -> None:
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
                way.cut_after = way.passed + 5_000_000 * step
            cuts = sum(way.cuts for way in ways)
            sums = all_summed(exchanges, step, elements, packs)
            assert sums == [expected(2, elements, packs)] * 2
            assert sum(way.cuts for way in ways) > cuts, "the connection was cut in this step"
            passed = sum(way.passed for way in ways) - before
            whole = 2 * packs * elements * 4
            assert whole < passed < 1.25 * whole, "not everything was sent again"
    for way in ways:
        way.close()


def session_number(exchange: Exchange) -> int:
    """The number of its session with its only peer."""
    [peer] = exchange.peers()
    return peer.session


def test_a_worn_session_is_replaced_while_the_steps_go_on(tmp_path: Path) -> None:
    """One key must not encrypt too much."""
    with meeting(tmp_path, 2, limits=Limits(worn_bytes=4_000_000)) as exchanges:
        step = 0
        while session_number(exchanges[0]) < 3:
            sums = all_summed(exchanges, step, 100_000, 2)
            assert sums == [expected(2, 100_000, 2)] * 2
            step += 1
            assert step < 5_000
        assert step > 3, "not with each step"


def test_a_large_mismatch_that_comes_in_the_middle_of_the_others_is_named(tmp_path: Path) -> None:
    """The other's numbers are still arriving, by the million, when this member announces its request."""

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
            together(lambda exchange: exchange.close(DONE), exchanges)
            assert time.monotonic() - began_s < LIMITS.handshake_s, "as long as a call takes that fails"


def test_no_thread_and_no_socket_stays_after_close(tmp_path: Path) -> None:
    threads, sockets = threading.active_count(), psutil.Process().num_fds()
    with meeting(tmp_path, 3) as exchanges:
        all_summed(exchanges, 0, 100_000)
        assert threading.active_count() > threads
        together(lambda exchange: exchange.close(DONE), exchanges)
        # Fewer if a thread of an earlier test was still ending.
        assert threading.active_count() <= threads
    assert psutil.Process().num_fds() <= sockets
