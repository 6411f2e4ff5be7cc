"""The machine: sums in any order of arrival with the same bits on all, and missing messages are reported."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.exchange import machine, problems
from core.exchange.pack import Pack, Payload, call_for
from core.exchange.state import (
    GATHER_BYTES,
    GATHER_TIMES,
    Add,
    Added,
    Announced,
    Arrived,
    Call,
    Closed,
    Complete,
    Discard,
    Effect,
    Event,
    Fail,
    HandedOver,
    Key,
    Kind,
    Left,
    Phase,
    Regrouped,
    Send,
    State,
    Take,
    Taken,
    Wire,
)
from core.session.frames import PIECE_BYTES
from core.vocabulary.errors import IllegalTransition, Problem
from tests.core.exchange.members import numbers, rank_order_sum, same_bits

Array = npt.NDArray[Any]
Letter = tuple[int, int, Key, Phase, Call, Payload]
"""From, to, and a message."""
BYE = Problem(code="stopped", what="Ben pressed Stop.", fix="Train again.")


class Member:
    """Carries out the machine's effects like the driver, without threads and connections."""

    def __init__(self, rank: int, members: int) -> None:
        self.state = State(rank=rank, members=members)
        self.packs: dict[Key, Pack] = {}
        self.over: dict[Key, Problem | None] = {}
        self.sent: list[Letter] = []
        self.discarded = 0

    def happens(self, event: Event) -> tuple[Effect, ...]:
        self.state, effects = machine.step(self.state, event)
        for effect in effects:
            match effect:
                case Send(rank, key, phase):
                    call = self.state.meetings[key].call
                    assert call
                    payload = self.packs[key].payload(rank, phase)
                    self.sent.append((self.state.rank, rank, key, phase, call, payload))
                case Add(key):
                    self.packs[key].advance()
                    self.happens(Added(key))
                case Complete(key):
                    assert key not in self.over, "a meeting ends once"
                    self.over[key] = None
                case Fail(key, problem):
                    assert key not in self.over
                    self.over[key] = problem
                case Discard(key):
                    self.packs.pop(key, None)
        return effects

    def hand_over(self, key: Key, array: Array, kind: Kind = "sum", wire: Wire = "f32") -> None:
        call = call_for(kind, array, wire)
        self.pack(key).bring(array, call)
        self.happens(HandedOver(key, call))

    def receive(self, letter: Letter) -> None:
        rank, _, key, phase, call, payload = letter
        if not any(isinstance(effect, Take) for effect in self.happens(Announced(rank, key, phase, call))):
            self.discarded += 1
            return
        pack = self.pack(key)
        landing = pack.land(rank, phase, call)
        for begin in range(0, payload.size, PIECE_BYTES):
            end = min(payload.size, begin + PIECE_BYTES)
            landing.data[begin:end] = payload.piece(begin, end)
            landing.received = end
            pack.take(rank, phase)
        self.happens(Arrived(rank, key, phase))

    def pack(self, key: Key) -> Pack:
        return self.packs.setdefault(key, Pack(self.state.rank, self.state.present))

    def take(self, key: Key) -> Any:
        assert self.over.pop(key) is None
        result = self.packs[key].result()
        self.happens(Taken(key))
        return result


def key(step: int = 0, pack: int = 0, generation: int = 0, attempt: int = 0) -> Key:
    return Key(generation, attempt, step, pack)


@given(
    members=st.integers(1, 4),
    lengths=st.lists(st.sampled_from([0, 1, 2, 3, 5, 70_000]), min_size=1, max_size=3),
    wire=st.sampled_from(["f32", "bf16", "fp16"]),
    seed=st.integers(0, 2**32),
)
def test_any_order_with_repeats_and_losses_gives_all_members_the_sum_in_rank_order(
    members: int, lengths: list[int], wire: Wire, seed: int
) -> None:
    """A lost message is resent and arrives later; a repeated one arrives twice."""
    chance = random.Random(seed)
    all_of = [Member(rank, members) for rank in range(members)]
    own = [[numbers(rank, n, pack) for pack, n in enumerate(lengths)] for rank in range(members)]
    to_bring = [(rank, pack) for rank in range(members) for pack in range(len(lengths))]
    under_way: list[Letter] = []
    while to_bring or under_way:
        at = chance.randrange(len(to_bring) + len(under_way))
        if at < len(to_bring):
            rank, pack = to_bring.pop(at)
            all_of[rank].hand_over(key(pack=pack), own[rank][pack], wire=wire)
        else:
            letter = under_way[at - len(to_bring)]
            if not chance.randrange(4):
                all_of[letter[1]].receive(letter)  # it stays under way: this is a repeat
            else:
                under_way.remove(letter)
                all_of[letter[1]].receive(letter)
        for member in all_of:
            under_way += member.sent
            member.sent = []
    for pack in range(len(lengths)):
        results = [member.take(key(pack=pack)) for member in all_of]
        assert all(same_bits(result, results[0]) for result in results)
        if wire == "f32" or members == 1:
            assert same_bits(results[0], rank_order_sum([own[rank][pack] for rank in range(members)]))
    assert not any(member.state.meetings or member.packs for member in all_of), "nothing is kept"


def deliver(*all_of: Member) -> None:
    under_way = deque(letter for member in all_of for letter in member.sent)
    for member in all_of:
        member.sent = []
    while under_way:
        letter = under_way.popleft()
        all_of[letter[1]].receive(letter)
        for member in all_of:
            under_way += member.sent
            member.sent = []


def two() -> tuple[Member, Member]:
    return Member(0, 2), Member(1, 2)


def test_a_gather_has_everybodys_arrays_by_rank_with_lengths_of_their_own() -> None:
    all_of = [Member(rank, 3) for rank in range(3)]
    own = [np.arange(4 * rank, dtype=np.int64).reshape(rank, 4) for rank in range(3)]
    for member in all_of:
        member.hand_over(key(), own[member.state.rank], kind="gather")
    deliver(*all_of)
    for member in all_of:
        assert all(map(same_bits, member.take(key()), own))


def test_three_members_send_two_thirds_of_the_bytes_twice() -> None:
    all_of = [Member(rank, 3) for rank in range(3)]
    for member in all_of:
        member.hand_over(key(), numbers(member.state.rank, 300))
    sent = sum(letter[5].size for letter in all_of[0].sent)
    deliver(*all_of)
    assert sent == 300 * 4 * 2 // 3
    assert all_of[0].packs[key()].payload(1, "total").size == 100 * 4


def test_a_repeated_message_does_no_harm_even_after_the_result_was_taken() -> None:
    one, other = two()
    one.hand_over(key(), numbers(0, 10))
    other.hand_over(key(), numbers(1, 10))
    letter = other.sent[0]
    deliver(one, other)
    one.receive(letter)
    result = one.take(key())
    one.receive(letter)
    assert one.discarded == 2
    assert not one.state.meetings
    assert same_bits(result, numbers(0, 10) + numbers(1, 10))


def test_messages_of_an_old_generation_or_attempt_are_dropped() -> None:
    one, other = two()
    other.hand_over(key(), numbers(1, 10))
    one.happens(Regrouped(1, 0))
    deliver(one, other)
    assert (one.discarded, one.state.meetings) == (1, {})


def test_regrouping_fails_unfinished_meetings_and_keeps_those_of_the_new_attempt() -> None:
    one, other = two()
    one.hand_over(key(), numbers(0, 10))
    other.hand_over(key(attempt=1), numbers(1, 10))
    one.receive(other.sent[0])
    one.happens(Regrouped(0, 1))
    problem = one.over[key()]
    assert problem and problem.code == problems.OLD
    assert set(one.state.meetings) == {key(attempt=1)}
    assert key() not in one.packs
    one.hand_over(key(attempt=1), numbers(0, 10))
    assert one.over[key(attempt=1)] is None


def test_regrouping_never_goes_back() -> None:
    one, _ = two()
    one.happens(Regrouped(2, 0))
    with pytest.raises(IllegalTransition):
        one.happens(Regrouped(1, 5))


def test_handing_over_for_an_old_generation_fails_at_once() -> None:
    one, _ = two()
    one.happens(Regrouped(1, 0))
    one.hand_over(key(), numbers(0, 3))
    problem = one.over[key()]
    assert problem and problem.code == problems.OLD


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        (Call("sum", "float32", (3, 4)), Call("sum", "float32", (4, 3))),
        (Call("sum", "float32", (3,)), Call("sum", "float64", (3,))),
        (Call("sum", "float32", (3,)), Call("gather", "float32", (3,))),
        (Call("sum", "float32", (3,)), Call("sum", "float32", (3,), "bf16")),
        (Call("sum", "float32", (3,), label="loss"), Call("sum", "float32", (3,), label="metrics")),
        (Call("gather", "int32", (3, 2)), Call("gather", "int32", (3, 3))),
    ],
    ids=["shape", "type", "kind", "wire", "label", "gathered rows"],
)
def test_a_mismatch_is_named_on_both_sides(own: Call, theirs: Call, early: int) -> None:
    members = two()
    calls = (own, theirs)
    for rank in (early, 1 - early):
        member = members[rank]
        dtype, shape = calls[rank].dtype, calls[rank].shape
        member.pack(key()).bring(np.zeros(shape, dtype), calls[rank])
        member.happens(HandedOver(key(), calls[rank]))
    deliver(*members)
    found = [member.over[key()] for member in members]
    assert found[0] == found[1]
    problem = found[0]
    assert problem and problem.code == problems.MISMATCH
    alike = own.label == theirs.label
    assert f"member 0 wants {own if alike else own.label or own}; member 1 wants " in problem.what
    assert problem.what.endswith(f"member 1 wants {theirs if alike else theirs.label or theirs}.")


def test_a_gather_that_is_far_too_large_is_a_mismatch_before_a_byte_of_it_is_accepted() -> None:
    one, _ = two()
    own = np.zeros((2, 3), np.int32)
    one.hand_over(key(), own, kind="gather")
    rows = GATHER_BYTES // 12
    assert any(isinstance(each, Take) for each in one.happens(announced(rows, key())))
    one.hand_over(key(step=1), own, kind="gather")
    effects = one.happens(announced(rows + 1, key(step=1)))
    assert not any(isinstance(each, Take) for each in effects)
    problem = one.over[key(step=1)]
    assert problem and problem.code == problems.MISMATCH


def test_a_long_gather_may_be_answered_by_one_as_long_in_proportion() -> None:
    own = Call("gather", "int32", (GATHER_BYTES // 4,))
    assert own.fits(Call("gather", "int32", (GATHER_TIMES * GATHER_BYTES // 4,)))
    assert not own.fits(Call("gather", "int32", (GATHER_TIMES * GATHER_BYTES // 4 + 1,)))


def announced(rows: int, at: Key) -> Announced:
    return Announced(1, at, "part", Call("gather", "int32", (rows, 3)))


@pytest.mark.parametrize("early", [True, False])
def test_a_member_that_goes_on_where_another_has_ended_says_so(early: bool) -> None:
    one = Member(0, 2)
    one.state = replace(one.state, names=("anna", "ben"))
    ended = Left(1, Problem(code=problems.DONE, what="The script has ended there."))
    if early:
        one.happens(ended)
    one.hand_over(key(), numbers(0, 10))
    if not early:
        one.happens(ended)
    problem = one.over[key()]
    assert problem and problem.code == problems.ENDED
    said = "The script went different ways: on ben it has ended; anna wants a sum of float32 [10]."
    assert problem.what == said


def test_a_mismatch_that_another_member_found_is_passed_on_unchanged() -> None:
    one = Member(0, 2)
    one.hand_over(key(), numbers(0, 10))
    found = Problem(code=problems.MISMATCH, what="anna wants one thing, ben another.", fix="Look.")
    one.happens(Left(1, found))
    assert one.over[key()] == found


def test_a_gather_of_other_lengths_is_no_mismatch() -> None:
    assert Call("gather", "int32", (3, 2)).fits(Call("gather", "int32", (0, 2)))
    assert not Call("gather", "int32", (3, 2)).fits(Call("gather", "int32", (3, 2), label="x"))


def test_a_member_that_left_fails_what_still_needs_it_and_nothing_else() -> None:
    all_of = [Member(rank, 3) for rank in range(3)]
    for member in all_of:
        member.hand_over(key(), numbers(member.state.rank, 10), kind="gather")
        if member.state.rank != 2:
            member.hand_over(key(pack=1), numbers(member.state.rank, 10))
    deliver(*all_of)
    all_of[0].happens(Left(2, BYE))
    assert all_of[0].over[key()] is None, "its part had come"
    problem = all_of[0].over[key(pack=1)]
    assert problem and problem.code == problems.LEFT
    assert "member 2 has left" in problem.what
    assert BYE.what in problem.what
    all_of[0].hand_over(key(step=1), numbers(0, 10))
    assert all_of[0].over[key(step=1)] is not None


def test_closing_fails_everything_open_and_all_that_follows() -> None:
    one, _ = two()
    one.hand_over(key(), numbers(0, 3))
    one.happens(Closed(BYE))
    one.hand_over(key(pack=1), numbers(0, 3))
    assert one.over == {key(): BYE, key(pack=1): BYE}
    assert one.happens(Announced(1, key(), "part", Call("sum", "float32", (3,)))) == ()


def test_a_pack_is_handed_over_once() -> None:
    one, _ = two()
    one.hand_over(key(), numbers(0, 3))
    with pytest.raises(IllegalTransition):
        one.hand_over(key(), numbers(0, 3))


def test_packs_that_this_member_never_requests_are_forgotten_two_steps_later() -> None:
    one, other = two()
    other.hand_over(key(pack=7), numbers(1, 10))
    deliver(one, other)
    for number in range(3):
        assert key(pack=7) in one.packs
        for member in (one, other):
            member.hand_over(key(step=number), numbers(member.state.rank, 3))
        deliver(one, other)
        one.take(key(step=number))
        other.take(key(step=number))
    assert key(pack=7) not in one.packs
    assert one.state.meetings == {}


def test_a_total_that_nobody_can_have_added_is_discarded() -> None:
    one = Member(0, 3)
    call = Call("sum", "float32", (9,))
    assert one.happens(Announced(1, key(), "total", call)) == ()
    assert not one.state.meetings


def test_missing_lists_the_needed_messages_by_sender() -> None:
    one = Member(0, 3)
    one.hand_over(key(), numbers(0, 9))
    assert machine.missing(one.state, key()) == {(r, phase) for r in (1, 2) for phase in ("part", "total")}
    call = Call("sum", "float32", (9,))
    one.receive((1, 0, key(), "part", call, Payload(12, lambda b, e: np.zeros(12, np.uint8)[b:e])))
    assert machine.missing(one.state, key()) == {(1, "total"), (2, "part"), (2, "total")}
    assert machine.missing(one.state, key(step=5)) == set()


def test_a_message_that_is_announced_twice_is_taken_once() -> None:
    one = Member(0, 2)
    call = Call("sum", "float32", (3,))
    assert one.happens(Announced(1, key(), "part", call)) == (Take(1, key(), "part"),)
    assert one.happens(Announced(1, key(), "part", call)) == ()


@pytest.mark.parametrize(("members", "kind"), [(2, "sum"), (3, "gather")])
def test_a_total_is_taken_only_of_a_sum_of_more_than_two(members: int, kind: Kind) -> None:
    one = Member(0, members)
    one.hand_over(key(), numbers(0, 9), kind=kind)
    call = one.state.meetings[key()].call
    assert call is not None
    assert one.happens(Announced(1, key(), "total", call)) == ()
    assert one.over == {}


def test_a_member_leaves_once_and_for_its_first_reason() -> None:
    one, _ = two()
    one.happens(Left(1, BYE))
    assert one.happens(Left(1, Problem(code="another", what="Another reason."))) == ()
    one.hand_over(key(), numbers(0, 3))
    problem = one.over[key()]
    assert problem and BYE.what in problem.what


def test_a_member_closes_once_and_for_its_first_reason() -> None:
    one, _ = two()
    one.hand_over(key(), numbers(0, 3))
    one.happens(Closed(BYE))
    assert one.happens(Closed(Problem(code="another", what="Another reason."))) == ()
    one.hand_over(key(pack=1), numbers(0, 3))
    assert one.over[key(pack=1)] == BYE


def test_after_a_mismatch_nothing_more_of_that_pack_is_taken() -> None:
    one = Member(0, 3)
    one.hand_over(key(), numbers(0, 9))
    one.happens(Announced(1, key(), "part", Call("sum", "float32", (4,))))
    problem = one.over[key()]
    assert problem and problem.code == problems.MISMATCH
    assert one.happens(Announced(2, key(), "part", Call("sum", "float32", (9,)))) == ()
