"""Crossing calls: whatever order each side sees, both keep the same connection."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.link.tie_break import BadNonce, Following, Numbering, TieBreak, tie_break
from core.vocabulary.ids import DeviceId

ANNA, BERT = DeviceId("a" * 64), DeviceId("b" * 64)


def test_the_lower_device_id_numbers_on_both_sides() -> None:
    assert isinstance(tie_break(ANNA, BERT, b"12345678"), Numbering)
    assert isinstance(tie_break(BERT, ANNA, b"12345678"), Following)


def meet(caller: TieBreak, called: TieBreak) -> None:
    """The call becomes the link on both sides."""
    answer = called.judge_call(caller.call())
    assert answer is not None
    assert caller.judge_answer(answer)


def test_a_call_in_quiet_becomes_the_link_whoever_calls() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    meet(anna, bert)

    meet(bert, anna)


def test_the_numbering_sides_call_is_kept_when_two_calls_cross() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    by_anna, by_bert = anna.call(), bert.call()
    assert anna.judge_call(by_bert) is None
    answer = bert.judge_call(by_anna)
    assert answer is not None
    assert anna.judge_answer(answer)


def test_a_crossing_call_that_comes_late_does_not_end_the_new_link() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    by_bert = bert.call()
    meet(anna, bert)
    assert anna.judge_call(by_bert) is None


def test_a_peer_that_lost_the_link_is_let_in_before_the_silence_is_noticed() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    meet(anna, bert)
    bert.lost()
    meet(bert, anna)


def test_a_peer_that_started_anew_is_let_in_before_the_silence_is_noticed() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    meet(anna, bert)
    bert = Following(b"bert-two")
    meet(bert, anna)

    anna = Numbering(b"anna-two")
    meet(anna, bert)


def test_a_peer_that_never_heard_that_its_call_was_taken_may_call_again() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    meet(anna, bert)
    bert.lost()
    assert anna.judge_call(bert.call()) is not None, "its answer gets lost"
    meet(bert, anna)


def test_an_answer_that_comes_after_the_call_was_given_up_is_no_link() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    answer = bert.judge_call(anna.call())
    assert answer is not None
    anna.gave_up()
    assert not anna.judge_answer(answer)


def test_an_answer_that_is_older_than_the_link_does_not_end_it() -> None:
    anna, bert = Numbering(b"anna-run"), Following(b"bert-run")
    called = anna.call()
    newer = bert.judge_call(anna.call())
    assert newer is not None
    assert anna.judge_answer(newer)
    assert bert.judge_call(called) is None


def test_who_only_follows_takes_the_first_number_and_each_one_once() -> None:
    bert = Following(b"bert-run")
    first, second = Numbering(b"anna-run").call(), b"anna-run" * 2 + bytes(7) + b"\2"
    assert bert.judge_answer(first)
    assert not bert.judge_answer(first)
    assert bert.judge_answer(second)
    assert not bert.judge_answer(first)


def test_a_fresh_node_is_let_in_whatever_numbers_it_says_that_it_knows() -> None:
    """Numbers from another incarnation of the numbering side mean nothing here."""
    anna = Numbering(b"anna-two")
    anna.call()
    assert anna.judge_call(b"bert-run" + b"anna-one" + bytes(7) + b"\x09") is None
    anna.gave_up()
    assert anna.judge_call(b"bert-run" + b"anna-one" + bytes(7) + b"\x09") is not None


@pytest.mark.parametrize("side", [Numbering(b"anna-run"), Following(b"bert-run")])
@pytest.mark.parametrize("nonce", [b"", b"short", bytes(25)])
def test_a_hello_with_a_strange_nonce_is_refused(side: TieBreak, nonce: bytes) -> None:
    with pytest.raises(BadNonce):
        side.judge_call(nonce)
    with pytest.raises(BadNonce):
        side.judge_answer(nonce)


@dataclass(eq=False)
class Connection:
    """Items under way to each end, in order: a nonce, or None for its end."""

    caller: Side
    other: Side
    inbox: dict[Side, list[bytes | None]] = field(default_factory=dict)

    def far(self, side: Side) -> Side:
        return self.other if side is self.caller else self.caller


@dataclass(eq=False)
class Side:
    tie_break: TieBreak
    link: Connection | None = None
    calling: Connection | None = None

    def calls(self, other: Side) -> Connection | None:
        if self.calling or self.link:
            return None
        self.calling = Connection(self, other)
        self.calling.inbox = {self: [], other: [self.tie_break.call()]}
        return self.calling

    def takes(self, connection: Connection) -> None:
        """The next item under way over ``connection`` arrives here."""
        came = connection.inbox[self].pop(0)
        if came is None:
            if self.link is connection:
                self.link = None
                self.tie_break.lost()
            if self.calling is connection:
                self.calling = None
                self.tie_break.gave_up()
        elif self.calling is connection:
            self.calling = None
            self._settle(connection, self.tie_break.judge_answer(came))
        else:
            answer = self.tie_break.judge_call(came)
            if answer is not None:
                connection.inbox[connection.far(self)].append(answer)
            self._settle(connection, answer is not None)

    def ends(self, connection: Connection) -> None:
        connection.inbox[connection.far(self)].append(None)
        connection.inbox[self].clear()

    def _settle(self, connection: Connection, won: bool) -> None:
        if not won:
            self.ends(connection)
            return
        if self.link is not None:
            self.ends(self.link)
        self.link = connection

    def loses_link(self) -> None:
        if self.link is not None:
            self.ends(self.link)
            self.link = None
            self.tie_break.lost()


@given(choices=st.lists(st.integers(0, 10**6), max_size=60))
def test_both_sides_keep_the_same_connection_in_any_order_of_calls_and_arrivals(choices: list[int]) -> None:
    anna, bert = Side(Numbering(b"anna-run")), Side(Following(b"bert-run"))
    connections: list[Connection] = []

    def arrivals() -> list[tuple[Side, Connection]]:
        return [(side, c) for c in connections for side in (anna, bert) if c.inbox[side]]

    def call(side: Side, other: Side) -> None:
        connection = side.calls(other)
        if connection:
            connections.append(connection)

    for choice in choices:
        waiting = arrivals()
        match choice % (4 + 3 * len(waiting)):
            case 0:
                call(anna, bert)
            case 1:
                call(bert, anna)
            case 2:
                anna.loses_link()
            case 3:
                bert.loses_link()
            case other:
                side, connection = waiting[(other - 4) % len(waiting)]
                side.takes(connection)
    # Everything arrives; then whoever has no link calls, until both have one.
    for _ in range(6):
        while waiting := arrivals():
            side, connection = waiting[0]
            side.takes(connection)
        assert anna.link is bert.link
        if anna.link is not None:
            return
        call(bert, anna)
        call(anna, bert)
    raise AssertionError("the two sides never met")


@given(order=st.lists(st.booleans(), min_size=12, max_size=12))
def test_two_calls_at_once_end_in_one_link_that_never_broke(order: list[bool]) -> None:
    anna, bert = Side(Numbering(b"anna-run")), Side(Following(b"bert-run"))
    by_anna, by_bert = anna.calls(bert), bert.calls(anna)
    assert by_anna is not None
    assert by_bert is not None
    for first in order:
        waiting = [(s, c) for c in (by_anna, by_bert) for s in (anna, bert) if c.inbox[s]]
        if waiting:
            side, connection = waiting[0 if first else -1]
            had = side.link
            side.takes(connection)
            assert had is None or side.link is had
    assert anna.link is bert.link is by_anna
