"""Members that connect over TLS on a network in memory, whose ends a test cuts and counts."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.exchange import handshake, problems
from core.exchange.driver import Exchange
from core.exchange.frames import VERSION, MemberHello, PackHead, encode_head
from core.exchange.handshake import MemberConnection
from core.exchange.problems import ExchangeFailed
from core.exchange.reach import HandshakeRefused
from core.exchange.state import LIMITS, Call, Key, Limits, Peer, PeerStatus, Wire
from core.net.tls_stream import Sockets
from core.session import frames
from core.session.frames import Ack, Alive, Begin, Goodbye, MessageHead, Word, encode
from core.vocabulary.errors import Problem, TandemError
from tests.core.exchange import members
from tests.core.exchange.members import (
    DONE,
    Array,
    address,
    identities,
    keyring,
    keys_of,
    numbers,
    rank_order_sum,
    same_bits,
    together,
)
from tests.core.exchange.memory import Address, Network

KEY = Key(0, 0, 0, 0)
STOPPED = Problem(code="stopped", what="Ben pressed Stop.", fix="Train again.")
SEVERAL_PIECES = 200_003  # elements: 800 KB
LATE_S, LONG_S = 5.0, 30.0
NOBODY: Address = ("127.0.0.1", 9999)
THREE_FLOATS = encode_head(PackHead(KEY, "part", Call("sum", "float32", (3,))))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network()
    monkeypatch.setattr("core.exchange.handshake.socket", network)
    return network


@pytest.fixture
def meeting(tmp_path: Path, network: Network) -> Callable[..., AbstractContextManager[list[Exchange]]]:
    return functools.partial(members.meeting, tmp_path, listen=network.listener)


Meeting = Callable[..., AbstractContextManager[list[Exchange]]]


def summed(exchange: Exchange, key: Key = KEY, elements: int = 10, wire: Wire = "f32") -> Array:
    exchange.hand_over(key, numbers(exchange.rank, elements), wire=wire)
    total: Array = exchange.wait([key])[0]
    return total


def expected(count: int, elements: int = 10) -> Array:
    return rank_order_sum([numbers(rank, elements) for rank in range(count)])


def all_have_the_sum(exchanges: list[Exchange], step: int = 0, elements: int = 10) -> bool:
    key = Key(0, 0, step, 0)
    sums = together(lambda exchange: summed(exchange, key, elements), exchanges)
    return all(same_bits(each, expected(len(exchanges), elements)) for each in sums)


def whose(exchange: Exchange, key: Key) -> list[Array]:
    return exchange.gather(key, np.array([exchange.rank]))


@contextmanager
def waiting(exchange: Exchange, key: Key = KEY) -> Iterator[list[Problem]]:
    """Waits for ``key`` in another thread. Yields a list that gets the wait's failure, if any."""
    failures: list[Problem] = []

    def wait() -> None:
        try:
            exchange.wait([key])
        except ExchangeFailed as failure:
            failures.append(failure.problem)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield failures
    finally:
        thread.join(10.0)
        assert not thread.is_alive()


def eventually(holds: Callable[[], object]) -> None:
    until_s = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < until_s, "it never came to be"
        time.sleep(0.005)


def sessions(exchanges: list[Exchange]) -> list[int]:
    """The session numbers of all members with each of their peers."""
    return [peer.session for exchange in exchanges for peer in exchange.peers()]


def only_peer(exchange: Exchange) -> PeerStatus:
    [peer] = exchange.peers()
    return peer


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("elements", [0, 1, SEVERAL_PIECES])
def test_all_members_get_the_sum_in_rank_order_bit_by_bit(
    meeting: Meeting, count: int, elements: int
) -> None:
    with meeting(count) as exchanges:
        assert all_have_the_sum(exchanges, 0, elements)
        assert all_have_the_sum(exchanges, 1, elements)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("wire", ["bf16", "fp16"])
def test_a_narrowed_sum_has_the_same_bits_on_all_and_is_near_the_true_one(
    meeting: Meeting, count: int, wire: Wire
) -> None:
    own = [np.random.default_rng(rank).standard_normal(SEVERAL_PIECES, np.float32) for rank in range(count)]

    def meet(exchange: Exchange) -> Array:
        exchange.hand_over(KEY, own[exchange.rank], wire=wire)
        total: Array = exchange.wait([KEY])[0]
        return total

    with meeting(count) as exchanges:
        sums = together(meet, exchanges)
    assert all(same_bits(each, sums[0]) for each in sums)
    assert 0 < np.abs(sums[0] - rank_order_sum(own)).max() < {"bf16": 0.1, "fp16": 0.02}[wire]


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "complex64", "float16", "bool"])
def test_other_types_travel_unchanged(meeting: Meeting, dtype: str) -> None:
    own = [(np.arange(6).reshape(2, 3) + rank).astype(dtype) for rank in range(2)]

    def meet(exchange: Exchange) -> bool:
        exchange.hand_over(KEY, own[exchange.rank], wire="bf16")
        return same_bits(exchange.wait([KEY])[0], own[0] + own[1])

    with meeting(2) as exchanges:
        assert together(meet, exchanges) == [True, True]


def test_a_gather_has_all_arrays_by_rank(meeting: Meeting) -> None:
    own = [np.full((rank, 2), rank, np.int64) for rank in range(3)]
    with meeting(3) as exchanges:
        for arrays in together(lambda exchange: exchange.gather(KEY, own[exchange.rank]), exchanges):
            assert [each.tolist() for each in arrays] == [each.tolist() for each in own]
            assert not any(each.flags.writeable for each in arrays)


def test_many_packs_in_any_order_leave_nothing_behind(meeting: Meeting) -> None:
    keys = keys_of(0, 5)

    def meet(exchange: Exchange) -> bool:
        for key in keys if exchange.rank else reversed(keys):
            exchange.hand_over(key, numbers(exchange.rank, 1000, key.pack))
        sums = exchange.wait(keys)
        return all(
            same_bits(total, rank_order_sum([numbers(rank, 1000, key.pack) for rank in range(2)]))
            for key, total in zip(keys, sums, strict=True)
        )

    with meeting(2) as exchanges:
        assert together(meet, exchanges) == [True, True]
        for exchange in exchanges:
            assert not exchange._packs
            assert not exchange._over
        eventually(lambda: all(exchange.is_idle for exchange in exchanges))


def test_members_go_on_after_many_cuts(meeting: Meeting, network: Network) -> None:
    with meeting(3) as exchanges:
        for step in range(6):
            network.cut_after = network.passed + 20_000 + 90_000 * step
            assert all_have_the_sum(exchanges, step, 60_000)
    assert network.cuts >= 5


@pytest.mark.parametrize("caller", [0, 1])
@pytest.mark.parametrize("shut", [NOBODY, None], ids=["refused", "no address"])
def test_one_open_direction_is_enough(
    meeting: Meeting, network: Network, caller: int, shut: Address | None
) -> None:
    def reach(rank: int, _: int, true: Address) -> Address | None:
        return true if rank == caller else shut

    with meeting(2, reach) as exchanges:
        assert all_have_the_sum(exchanges)
        network.cut()
        assert all_have_the_sum(exchanges, 1)


def test_a_member_far_ahead_is_held_back(meeting: Meeting) -> None:
    elements, keys = 100_000, keys_of(0, 8)
    with meeting(2, limits=Limits(early_bytes=1_000_000)) as exchanges:
        ahead, behind = exchanges
        for key in keys:
            ahead.hand_over(key, numbers(0, elements))
        eventually(lambda: sum(pack.early_bytes() for pack in behind._packs.values()) == 800_000)
        time.sleep(0.3)
        assert len(behind._packs) == 2
        assert only_peer(ahead).connection == "connected"
        for key in keys:
            assert same_bits(summed(behind, key, elements), expected(2, elements))
        assert all(same_bits(each, expected(2, elements)) for each in ahead.wait(keys))


def test_a_wait_may_have_a_limit_and_go_on_after_it(meeting: Meeting) -> None:
    with meeting(2) as (one, other):
        one.hand_over(KEY, numbers(0, 10))
        with pytest.raises(TimeoutError, match=r"within 0 s"):
            one.wait([KEY], 0.05)
        assert one.waiting() == []
        other.hand_over(KEY, numbers(1, 10))
        assert same_bits(one.wait([KEY], 60.0)[0], other.wait([KEY])[0])


def test_a_wait_that_reads_by_itself_keeps_its_limit(meeting: Meeting) -> None:
    """The peer's signs of life arrive meanwhile, and do not prolong it."""
    with meeting(2, limits=Limits(rest_s=LONG_S)) as (one, other):
        assert all_have_the_sum([one, other])
        eventually(lambda: one._channels[1].session.turns._at_rest)
        later = Key(0, 0, 1, 0)
        brought = threading.Timer(LATE_S, other.hand_over, (later, numbers(1, 10)))
        brought.start()
        one.hand_over(later, numbers(0, 10))
        with pytest.raises(TimeoutError, match=r"within 0 s"):
            one.wait([later], 0.05)
        brought.cancel()
        brought.join()


def test_a_mismatch_is_named_alike_on_both_sides(meeting: Meeting) -> None:
    def meet(exchange: Exchange) -> Problem:
        exchange.hand_over(KEY, np.zeros((3, 4) if exchange.rank else (12,), np.float32), label="gradients")
        with pytest.raises(ExchangeFailed) as failure:
            exchange.wait([KEY])
        return failure.value.problem

    with meeting(2) as exchanges:
        one, other = together(meet, exchanges)
    assert one == other
    assert one.code == problems.MISMATCH
    assert "member 1 wants gradients (sum of float32 [3, 4])." in one.what


def test_closing_ends_waits_on_both_sides_and_says_why(meeting: Meeting) -> None:
    with meeting(2) as exchanges:
        one, other = exchanges
        assert all_have_the_sum(exchanges)
        keys = [Key(0, 0, 1, 0), Key(0, 0, 1, 1)]
        for exchange, key in zip(exchanges, keys, strict=True):
            exchange.hand_over(key, numbers(exchange.rank, 10))
        with waiting(one, keys[0]) as own, waiting(other, keys[1]) as theirs:
            eventually(lambda: one.waiting() and other.waiting())
            one.close(STOPPED)
        assert own == [STOPPED]
        assert [(problem.code, problem.fix) for problem in theirs] == [(problems.LEFT, theirs[0].fix)]
        assert "member 0 has left: Ben pressed Stop." in theirs[0].what
        assert only_peer(other).connection == "closed"
        one.close(DONE)
        one.hand_over(Key(0, 0, 2, 0), numbers(0, 3))
        with pytest.raises(ExchangeFailed, match="Ben pressed Stop"):
            one.wait([Key(0, 0, 2, 0)])


def test_a_member_that_closes_after_its_last_step_still_sends_what_others_lack(meeting: Meeting) -> None:
    elements = 1_000_000

    def meet(exchange: Exchange) -> bool:
        total = summed(exchange, KEY, elements)
        exchange.close(DONE, linger_s=120.0)
        return same_bits(total, expected(3, elements))

    with meeting(3) as exchanges:
        began_s = time.monotonic()
        assert together(meet, exchanges) == [True] * 3
        assert time.monotonic() - began_s < 60.0, "nobody lingered without a need"


def test_a_closing_member_lingers_through_a_cut(meeting: Meeting, network: Network) -> None:
    with meeting(2) as exchanges:
        ahead, behind = exchanges
        assert all_have_the_sum(exchanges)
        behind.hand_over(Key(0, 0, 1, 0), numbers(1, SEVERAL_PIECES))
        network.cut_after = network.passed + 1_200_000
        assert same_bits(summed(ahead, Key(0, 0, 1, 0), SEVERAL_PIECES), expected(2, SEVERAL_PIECES))
        ahead.close(DONE, linger_s=60.0)
        assert same_bits(behind.wait([Key(0, 0, 1, 0)])[0], expected(2, SEVERAL_PIECES))
        assert network.cuts == 1


def test_regrouping_ends_the_old_attempt_and_the_step_is_repeated(meeting: Meeting) -> None:
    with meeting(2) as exchanges:
        one, other = exchanges
        one.hand_over(KEY, numbers(0, 10))
        with waiting(one) as failures:
            eventually(lambda: one.waiting() and other._packs)
            for exchange in exchanges:
                exchange.regroup(0, 1)
        assert [problem.code for problem in failures] == [problems.OLD]
        assert not other._packs, "what came of the old attempt is gone"
        sums = together(lambda exchange: summed(exchange, Key(0, 1, 0, 0)), exchanges)
        assert all(same_bits(each, expected(2)) for each in sums)
        with pytest.raises(ExchangeFailed) as failure:
            one.wait([Key(0, 0, 7, 0)])
        assert failure.value.code == problems.OLD


def test_regrouping_drops_messages_not_yet_begun(meeting: Meeting) -> None:
    with meeting(2, lambda *_: None) as exchanges:
        one = exchanges[0]
        one.hand_over(KEY, numbers(0, 10))
        assert only_peer(one).unconfirmed
        one.regroup(0, 0)
        assert only_peer(one).unconfirmed
        one.regroup(0, 1)
        assert not only_peer(one).unconfirmed


def test_remaining_members_meet_without_those_who_left(meeting: Meeting) -> None:
    elements = 3001
    with meeting(4) as exchanges:
        for each in exchanges[:3]:
            each.hand_over(KEY, numbers(each.rank, elements))
        for number, (there, gone) in enumerate((((0, 1, 2), [3]), ((1, 2), [0, 3]), ((2,), [0, 1])), 1):
            left = [exchanges[rank] for rank in there]
            for each in left:
                each.regroup(number, 0, gone)
                assert each.membership == (number, there)
            total = rank_order_sum([numbers(rank, elements) for rank in there])
            key, other = keys_of(0, 2, number)
            sums = together(functools.partial(summed, key=key, elements=elements), left)
            assert all(same_bits(each, total) for each in sums)
            told = together(functools.partial(whose, key=other), left)
            assert [[int(part[0]) for part in each] for each in told] == [list(there)] * len(there)
            assert all(each.waiting() == [] and len(each.peers()) == len(there) - 1 for each in left)


@pytest.mark.parametrize("is_told", [True, False], ids=["a node says so", "nobody says so"])
def test_the_others_may_go_on_without_a_member_that_failed_by_its_own_fault(
    meeting: Meeting, is_told: bool
) -> None:
    with meeting(3, limits=Limits(missed_s=60.0 if is_told else 0.1)) as exchanges:
        one, second, third = exchanges
        assert all_have_the_sum(exchanges)
        key = Key(0, 0, 1, 0)
        for each in (one, second):
            each.hand_over(key, numbers(each.rank, 10))
        with waiting(one, key) as ones, waiting(second, key) as seconds:
            third.close(Problem(code="out-of-memory", what="It was too much."))
            eventually(lambda: all(each.peers()[1].connection == "closed" for each in (one, second)))
            if is_told:
                for each in (one, second):
                    each.regroup(1, 0, [2])
        code = problems.OLD if is_told else problems.LEFT
        assert [problem.code for problem in (*ones, *seconds)] == [code, code]
        if is_told:
            sums = together(functools.partial(summed, key=Key(1, 0, 0, 0)), exchanges[:2])
            assert all(same_bits(each, expected(2)) for each in sums)


def test_messages_of_a_generation_not_known_yet_wait_until_it_is(meeting: Meeting) -> None:
    with meeting(3) as exchanges:
        one, second, _ = exchanges
        second.regroup(1, 0, [2])
        key = Key(1, 0, 0, 0)
        second.hand_over(key, numbers(1, SEVERAL_PIECES))
        eventually(lambda: one.peers()[0].connection == "connected")
        time.sleep(0.2)
        assert not one._packs
        one.regroup(1, 0, [2])
        assert same_bits(summed(one, key, SEVERAL_PIECES), expected(2, SEVERAL_PIECES))
        assert same_bits(second.wait([key])[0], expected(2, SEVERAL_PIECES))


def test_awaited_members_are_reported(meeting: Meeting) -> None:
    elements = 3000
    keys = keys_of(1, 2)
    with meeting(3) as exchanges:
        assert all_have_the_sum(exchanges)
        assert exchanges[0].waiting() == []
        for exchange in exchanges[:2]:
            for key in keys[: 2 - exchange.rank]:
                exchange.hand_over(key, numbers(exchange.rank, elements))
        began_s = time.monotonic()
        with waiting(exchanges[0], keys[0]) as failures:
            eventually(lambda: any(each.bytes_come for each in exchanges[0].waiting()))
            time.sleep(0.1)
            first, second = exchanges[0].waiting()
            assert (first.rank, first.bytes_come, first.bytes_total) == (1, 4000, 8000)
            assert (second.rank, second.bytes_come, second.bytes_total) == (2, 0, 8000)
            assert first.connection == second.connection == "connected"
            assert 0.1 <= first.since_s <= time.monotonic() - began_s
            assert 0 <= first.heard_s < 2.0
            exchanges[2].close(STOPPED)
        assert [problem.code for problem in failures] == [problems.LEFT]
        assert exchanges[0].waiting() == []


def test_a_member_that_never_connects_is_reported_with_its_calls(meeting: Meeting) -> None:
    with meeting(2, lambda *_: NOBODY) as exchanges:
        exchanges[0].hand_over(KEY, numbers(0, 3))
        with waiting(exchanges[0]):
            eventually(exchanges[0].waiting)
            assert [each.connection for each in exchanges[0].waiting()] == ["dialling"]
            exchanges[0].close(STOPPED)


def test_ranks_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    of = identities(tmp_path, 2)
    for rank, peers in ((0, [Peer(2, None)]), (1, [Peer(1, None)]), (0, [])):
        with pytest.raises(TandemError, match="ranks don't match"):
            Exchange(rank, peers, keyring(of, rank), "run", None)


def test_waiting_for_a_pack_that_was_not_handed_over_is_an_error(meeting: Meeting) -> None:
    with meeting(2) as exchanges:
        with pytest.raises(KeyError):
            exchanges[0].wait([KEY])
        assert not exchanges[0]._waits


# --- somebody else at the other end ---------------------


def read_word(connection: MemberConnection) -> Word:
    return frames.read(connection.stream, frames.WORDS)


class Stranger:
    """Speaks for rank 1 to member 0, message by message."""

    def __init__(self, folder: Path, network: Network, limits: Limits = LIMITS) -> None:
        of = identities(folder, 2)
        self.keyring = keyring(of, 1)
        listener = network.listener()
        self.address = address(listener)
        self.member = Exchange(0, [Peer(1, None)], keyring(of, 0), "run", listener, limits=limits)
        self.member.start()
        self.sockets = Sockets()

    def hello(self, **changed: object) -> MemberHello:
        fields: dict[str, Any] = {"version": VERSION, "run": "run", "rank": 1, "nonce": bytes(8)}
        return MemberHello(**{**fields, "carries": "from-caller", **changed})

    def call(self, **changed: object) -> MemberConnection:
        hello = self.hello(**changed)
        return handshake.dial(self.address, 0, self.keyring, hello, self.sockets, LIMITS.handshake_s)

    def session(self) -> tuple[MemberConnection, MemberConnection]:
        """The sending and the receiving connection, both begun."""
        sending, receiving = self.call(), self.call(carries="to-caller")
        begin = read_word(receiving)
        assert begin == Begin(session=1, message=0, bytes=0)
        return sending, receiving

    def close(self) -> None:
        self.sockets.close()
        self.member.close(DONE)


@pytest.fixture
def stranger(tmp_path: Path, network: Network) -> Iterator[Stranger]:
    stranger = Stranger(tmp_path, network)
    yield stranger
    stranger.close()


@pytest.mark.parametrize("changed", [{"version": 99}, {"run": "another"}, {"rank": 0}])
def test_a_hello_of_another_run_version_or_rank_is_refused(
    stranger: Stranger, changed: dict[str, object]
) -> None:
    with pytest.raises(OSError, match="closed"):
        stranger.call(**changed)
    assert stranger.call().rank == 0


def test_a_first_word_other_than_hello_is_refused(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match="closed"), monkeypatch.context() as patch:
        patch.setattr("core.exchange.handshake.frames.encode", lambda _: encode(Alive()))
        stranger.call()


def test_an_answer_to_another_call_is_refused(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter([encode(stranger.hello()), encode(stranger.hello(rank=0, nonce=b"12345678"))])
    monkeypatch.setattr("core.exchange.handshake.frames.encode", lambda _: next(said))
    with pytest.raises(HandshakeRefused, match="another call"):
        stranger.call()


@pytest.mark.parametrize(
    "data",
    [
        encode(Begin(session=1, message=1, bytes=0)),
        encode(Begin(session=1, message=0, bytes=1)),
        encode(Begin(session=2, message=0, bytes=0)),
        encode(Alive()),
        b"\x03\x00\x00\x00\x01",
        encode(Begin(session=1, message=0, bytes=0)) + encode(Ack(message=1)),
        encode(Begin(session=1, message=0, bytes=0)) + encode(Begin(session=1, message=0, bytes=0)),
        encode(Begin(session=1, message=0, bytes=0)) + b"\x02\x00\x00\x00\x01x",
        encode(Begin(session=1, message=0, bytes=0)) + encode(MessageHead(0, 0, 12, b"no pack")),
        encode(Begin(session=1, message=0, bytes=0)) + encode(MessageHead(0, 0, 13, THREE_FLOATS)),
    ],
    ids=["ahead", "in nothing", "number", "no begin", "kind", "ack", "begin twice", "piece", "head", "size"],
)
def test_a_peer_that_sends_garbage_is_told_so_and_the_wait_ends(stranger: Stranger, data: bytes) -> None:
    sending, receiving = stranger.session()
    sending.stream.write(data)
    word = read_word(receiving)
    assert isinstance(word, Goodbye)
    stranger.member.hand_over(KEY, numbers(0, 3))
    with pytest.raises(ExchangeFailed) as failure:
        stranger.member.wait([KEY])
    assert failure.value.code == problems.LEFT
    assert only_peer(stranger.member).connection == "closed"


def test_a_goodbye_ends_the_wait_with_its_reason(stranger: Stranger) -> None:
    sending, _ = stranger.session()
    sending.stream.write(
        encode(Begin(session=1, message=0, bytes=0)), encode(Goodbye(code="full", what="The disk is full."))
    )
    stranger.member.hand_over(KEY, numbers(0, 3))
    with pytest.raises(ExchangeFailed, match="The disk is full"):
        stranger.member.wait([KEY])


def test_a_closing_member_keeps_reading_until_the_other_has_its_reason(stranger: Stranger) -> None:
    sending, receiving = stranger.session()
    sending.stream.write(encode(Begin(session=1, message=0, bytes=0)))
    closing_it = threading.Thread(target=stranger.member.close, args=[DONE])
    closing_it.start()
    eventually(lambda: only_peer(stranger.member).connection == "closed")
    for _ in range(3):
        sending.stream.write(encode(Alive()))
    assert read_word(receiving) == Goodbye(code=DONE.code, what=DONE.what, fix=DONE.fix)
    assert closing_it.is_alive(), "it left before the other had heard of it"
    sending.stream.sock.close()
    closing_it.join(10.0)
    assert not closing_it.is_alive()


def test_halves_that_never_become_a_session_are_closed_beyond_four(
    stranger: Stranger, network: Network
) -> None:
    halves = [stranger.call(nonce=bytes([rank] * 8)) for rank in range(5)]
    channel = stranger.member._channels[1]
    eventually(lambda: len(channel._halves._first) == 4 and bytes(8) not in channel._halves._first)
    with pytest.raises(OSError, match="closed"):
        read_word(halves[0])


def test_two_halves_of_the_same_direction_are_closed(stranger: Stranger) -> None:
    one, other = stranger.call(), stranger.call()
    for met in (one, other):
        with pytest.raises(OSError, match="closed"):
            read_word(met)
    assert only_peer(stranger.member).connection == "dialling"


def test_a_second_session_of_a_caller_that_knew_the_first_replaces_it(stranger: Stranger) -> None:
    """A caller that knew of the session and calls again has lost it; otherwise the calls only crossed."""
    stranger.session()
    crossing = [stranger.call(nonce=b"1" * 8), stranger.call(nonce=b"1" * 8, carries="to-caller")]
    with pytest.raises(OSError, match="closed"):
        read_word(crossing[1])
    assert sessions([stranger.member]) == [1]
    stranger.call(nonce=b"2" * 8, seen=1)
    again = stranger.call(nonce=b"2" * 8, seen=1, carries="to-caller")
    assert read_word(again) == Begin(session=2, message=0, bytes=0)
    assert sessions([stranger.member]) == [2]
