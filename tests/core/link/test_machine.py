"""One link's protocol: events and a time in, state and effects out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.link.machine import HEARTBEAT_S, SILENT_S, accepted, dialled, step
from core.link.state import (
    Broken,
    CameUp,
    Deliver,
    Effect,
    End,
    Event,
    Leaving,
    Opening,
    Over,
    Received,
    Send,
    State,
    Ticked,
    Up,
)
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.peer_messages import Bye, Message, Ping, StopAsked
from tests.core.link.examples import hello

STOP = StopAsked(run=RunId("r"))
PROBLEM = Problem(code="x", what="It ends.")


def up(at_s: float = 0.0) -> State:
    state, _ = accepted(hello("anna"), hello("bert"), "bert", at_s)
    return state


def test_the_caller_speaks_first_and_is_up_with_the_answer() -> None:
    state, effects = dialled(hello("anna"), "bert", 0.0)
    assert effects == (Send(hello("anna")),)
    state, effects = step(state, Received(hello("bert")), 1.0)
    assert isinstance(state, Up)
    assert effects == (CameUp(hello("bert")),)


def test_the_called_side_answers_and_is_up() -> None:
    state, effects = accepted(hello("anna"), hello("bert"), "bert", 0.0)
    assert isinstance(state, Up)
    assert effects == (Send(hello("anna")), CameUp(hello("bert")))


def test_other_versions_of_packages_do_not_keep_a_link_from_coming_up() -> None:
    _, effects = accepted(hello("anna"), hello("bert", keras="3.14.0"), "bert", 0.0)
    assert CameUp(hello("bert", keras="3.14.0")) in effects


@pytest.mark.parametrize("calls", [True, False])
def test_another_protocol_ends_the_link_after_both_hellos(calls: bool) -> None:
    mine, theirs = hello("anna"), hello("bert", protocol=2)
    if calls:
        state, effects = step(dialled(mine, "bert", 0.0)[0], Received(theirs), 0.0)
    else:
        state, effects = accepted(mine, theirs, "bert", 0.0)
        assert effects[0] == Send(mine)
    assert isinstance(state, Over)
    assert state.problem.code == "versions-differ"
    assert "bert" in state.problem.what
    assert effects[-1] == End(state.problem)
    assert not any(isinstance(effect, CameUp) for effect in effects)


def test_messages_are_delivered_and_pings_are_not() -> None:
    state, effects = step(up(), Received(STOP), 1.0)
    assert effects == (Deliver(STOP),)
    assert step(state, Received(Ping()), 2.0)[1] == ()


def test_a_ping_goes_out_with_each_heartbeat_once_up() -> None:
    assert step(up(), Ticked(), HEARTBEAT_S)[1] == (Send(Ping()),)
    opening, _ = dialled(hello(), "bert", 0.0)
    assert step(opening, Ticked(), HEARTBEAT_S)[1] == ()


def ticks(state: State, from_s: float, until_s: float) -> tuple[State, list[Effect]]:
    effects: list[Effect] = []
    at_s = from_s + HEARTBEAT_S
    while at_s <= until_s:
        state, more = step(state, Ticked(), at_s)
        effects += more
        at_s += HEARTBEAT_S
    return state, effects


@pytest.mark.parametrize("begin", [up(), dialled(hello(), "bert", 0.0)[0]], ids=["up", "no hello yet"])
def test_a_peer_silent_for_ten_seconds_is_named_and_left(begin: State) -> None:
    state, effects = ticks(begin, 0.0, SILENT_S - HEARTBEAT_S)
    assert not isinstance(state, Over)
    state, effects = ticks(state, SILENT_S - HEARTBEAT_S, SILENT_S)
    assert isinstance(state, Over)
    assert state.problem.code == "link-silent"
    assert "bert" in state.problem.what
    assert effects == [End(state.problem)]


def test_any_message_counts_as_a_sign_of_life() -> None:
    state, _ = ticks(up(), 0.0, 8.0)
    state, _ = step(state, Received(STOP), 8.5)
    state, _ = ticks(state, 8.0, 18.0)
    assert isinstance(state, Up)
    assert isinstance(ticks(state, 18.0, 20.0)[0], Over)


def test_the_time_this_laptop_slept_is_no_silence_of_the_peer() -> None:
    state, effects = step(up(), Ticked(), 3600.0)
    assert isinstance(state, Up)
    assert effects == (Send(Ping()),)
    state, _ = ticks(state, 3600.0, 3600.0 + SILENT_S)
    assert isinstance(state, Over)


def test_leaving_says_goodbye_and_ends() -> None:
    state, effects = step(up(), Leaving(PROBLEM), 1.0)
    assert state == Over(PROBLEM)
    assert effects == (Send(Bye(problem=PROBLEM)), End(PROBLEM))


def test_a_goodbye_and_a_broken_connection_end_it_without_a_word() -> None:
    assert step(up(), Received(Bye(problem=PROBLEM)), 1.0) == (Over(PROBLEM), (End(PROBLEM),))
    assert step(up(), Broken(PROBLEM), 1.0) == (Over(PROBLEM), (End(PROBLEM),))


def test_a_second_hello_is_out_of_turn() -> None:
    state, effects = step(up(), Received(hello()), 1.0)
    assert isinstance(state, Over)
    assert state.problem.code == "link-out-of-turn"
    assert effects == (Send(Bye(problem=state.problem)), End(state.problem))


@pytest.mark.parametrize("message", [Ping(), STOP])
def test_nothing_is_delivered_before_the_hello(message: Message) -> None:
    opening, _ = dialled(hello(), "bert", 0.0)
    state, effects = step(opening, Received(message), 1.0)
    assert isinstance(state, Over)
    assert state.problem.code == "link-out-of-turn"
    assert not any(isinstance(effect, Deliver) for effect in effects)


_events: st.SearchStrategy[Event] = st.sampled_from(
    [
        Ticked(),
        Received(hello("bert")),
        Received(hello("bert", protocol=2)),
        Received(Ping()),
        Received(STOP),
        Received(Bye(problem=PROBLEM)),
        Leaving(PROBLEM),
        Broken(PROBLEM),
    ]
)


@given(
    calls=st.booleans(),
    events=st.lists(st.tuples(_events, st.floats(0, 30, allow_nan=False)), max_size=30),
)
def test_whatever_happens_a_link_comes_up_at_most_once_and_ends_at_most_once(
    calls: bool, events: list[tuple[Event, float]]
) -> None:
    begin = dialled(hello(), "bert", 0.0) if calls else accepted(hello(), hello("bert"), "bert", 0.0)
    state, effects = begin[0], list(begin[1])
    now_s = 0.0
    for event, later_s in events:
        now_s += later_s
        before = state
        state, more = step(state, event, now_s)
        effects += more
        if isinstance(before, Over):
            assert (state, more) == (before, ())
    kinds = [type(effect) for effect in effects]
    assert kinds.count(CameUp) <= 1
    assert kinds.count(End) == isinstance(state, Over)
    if Deliver in kinds:
        assert CameUp in kinds[: kinds.index(Deliver)]
    assert not isinstance(state, Opening) or CameUp not in kinds


@pytest.mark.parametrize(
    "end",
    [
        Broken(PROBLEM),
        Received(
            Bye(problem=Problem(code="link-silent", what="anna fell silent: nothing came from it for 10 s."))
        ),
    ],
    ids=["broken", "given up by the peer"],
)
@pytest.mark.parametrize("ticks_first", [False, True])
def test_a_laptop_that_itself_slept_does_not_blame_the_other(end: Event, ticks_first: bool) -> None:
    state, _ = step(up(), Ticked(), HEARTBEAT_S)
    woke_s = 2 * HEARTBEAT_S + 40.0
    if ticks_first:
        state, _ = step(state, Ticked(), woke_s)
        state, _ = step(state, Ticked(), woke_s + HEARTBEAT_S)
        woke_s += 3.0
    over, _ = step(state, end, woke_s)
    assert isinstance(over, Over)
    assert over.problem.code == "link-slept"
    assert "This laptop slept or stood still for 40 s, and its connection to bert ended." in over.problem.what


def test_a_link_that_ends_long_after_a_sleep_or_by_the_peers_own_word_has_its_own_reason() -> None:
    state, _ = step(up(), Ticked(), HEARTBEAT_S)
    over, _ = step(state, Received(Bye(problem=PROBLEM)), 60.0)
    assert isinstance(over, Over) and over.problem == PROBLEM
    now_s = 60.0
    while now_s < 100.0:
        state, _ = step(state, Ticked(), now_s)
        state, _ = step(state, Received(Ping()), now_s)
        now_s += HEARTBEAT_S
    over, _ = step(state, Broken(PROBLEM), now_s)
    assert isinstance(over, Over) and over.problem == PROBLEM
