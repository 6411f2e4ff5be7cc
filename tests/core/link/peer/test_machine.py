"""When a paired device is called: events and a time in, state and effects out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.link.peer.machine import MOST_RESTARTS, RECENT_S, SOON, STEADY_S, begun, step
from core.link.peer.state import (
    CallFailed,
    Calling,
    CameUp,
    Dismissed,
    Effect,
    EndPause,
    Event,
    Greet,
    Greeting,
    HangUp,
    Linked,
    NetworkChanged,
    NotCalled,
    Pause,
    Paused,
    PauseOver,
    Reached,
    State,
    StopDialling,
    TellDown,
    TheirsFailed,
    Tries,
    TryAddresses,
    WentDown,
)
from core.vocabulary.errors import Problem

AWAY = Problem(code="unreachable", what="It is not there.")
REFUSED = Problem(code="link-refused", what="It refused.")
DIFFERS = Problem(code="versions-differ", what="Another protocol.")
LOST = Problem(code="link-closed", what="It closed.")
GONE = Problem(code="nobody-listens", what="Nothing listens there.")
ANSWERED = Linked(since_s=0.0, failures=0, answered=True)


def after(*events: Event, state: State | None = None, now_s: float = 0.0) -> tuple[State, list[Effect]]:
    """The last state and all effects; from the initial state without ``state``."""
    effects: list[Effect] = []
    if state is None:
        state, first = begun()
        effects += first
    for event in events:
        state, more = step(state, event, now_s)
        effects += more
    return state, effects


def test_a_device_is_called_as_soon_as_it_is_known() -> None:
    assert after() == (Calling(Tries()), [TryAddresses()])


def test_a_device_that_answers_is_greeted_and_may_become_the_link() -> None:
    state, effects = after(Reached(), CameUp(ours=True), now_s=7.0)
    assert state == Linked(since_s=7.0, failures=0, answered=True)
    assert effects == [TryAddresses(), Greet()]


def test_a_call_that_fails_is_made_again_after_a_growing_pause() -> None:
    state, effects = after(CallFailed(AWAY), PauseOver(), CallFailed(AWAY))
    assert state == Paused(Tries(failures=2, trouble=AWAY))
    assert effects == [TryAddresses(), Pause(1), TryAddresses(), Pause(2)]


@pytest.mark.parametrize("problem", [REFUSED, DIFFERS])
def test_failures_for_a_person_to_fix_are_reported_once_at_their_second_occurrence(problem: Problem) -> None:
    failed: tuple[Event, ...] = (CallFailed(problem), PauseOver())
    assert TellDown(problem) not in after(*failed)[1]
    assert after(*failed, *failed)[1].count(TellDown(problem)) == 1
    assert after(*failed, *failed, *failed, *failed)[1].count(TellDown(problem)) == 1


def test_for_some_minutes_after_a_link_was_lost_pauses_stay_short() -> None:
    state = after(WentDown(AWAY), state=Linked(since_s=0.0, failures=0), now_s=STEADY_S)[0]
    failed: tuple[Event, ...] = (PauseOver(), CallFailed(AWAY))
    state, effects = after(*failed * 20, state=state, now_s=STEADY_S + RECENT_S - 1.0)
    pauses = [effect.failures for effect in effects if isinstance(effect, Pause)]
    assert pauses == [2, *[SOON] * 19]
    assert Pause(22) in after(*failed, state=state, now_s=STEADY_S + RECENT_S)[1]


def test_an_absent_device_is_not_reported() -> None:
    effects = after(*[event for _ in range(5) for event in (CallFailed(AWAY), PauseOver())])[1]
    assert not [effect for effect in effects if isinstance(effect, TellDown)]


def test_a_network_change_ends_the_pause_and_makes_the_next_one_short() -> None:
    paused = after(CallFailed(AWAY), PauseOver(), CallFailed(AWAY))[0]
    state, effects = after(NetworkChanged(), CallFailed(AWAY), state=paused)
    assert effects == [EndPause(), TryAddresses(), Pause(1)]
    assert state == Paused(Tries(failures=1, trouble=AWAY))


def test_a_network_change_restarts_a_call_under_way() -> None:
    state, effects = after(CallFailed(AWAY), PauseOver(), NetworkChanged())
    assert state == Calling(Tries(failures=0, trouble=AWAY, restarts=1))
    assert effects == [TryAddresses(), Pause(1), TryAddresses(), StopDialling(), TryAddresses()]


def test_invariant_a_stranger_that_announces_addresses_again_and_again_keeps_no_call_from_ending() -> None:
    state, effects = after(*[NetworkChanged()] * 1000)
    assert effects.count(StopDialling()) == MOST_RESTARTS
    state, effects = after(CallFailed(AWAY), PauseOver(), NetworkChanged(), state=state)
    assert effects.count(StopDialling()) == 1, "each call"


def test_the_devices_own_call_ends_the_pause_and_one_of_ours_tries_whether_its_port_is_open() -> None:
    state, effects = after(CallFailed(AWAY), CameUp(ours=False), now_s=3.0)
    assert state == Linked(since_s=3.0, failures=1, call="dialling")
    assert effects[-2:] == [EndPause(), TryAddresses()]
    assert after(CallFailed(AWAY), state=state) == (Linked(since_s=3.0, failures=1), [])
    assert after(Reached(), state=state) == (Linked(since_s=3.0, failures=1, answered=True), [HangUp()])


def test_a_call_of_the_device_that_replaces_its_link_is_tried_back_unless_it_answered_already() -> None:
    closed, open_ = Linked(since_s=0.0, failures=0), Linked(since_s=0.0, failures=0, answered=True)
    assert after(CameUp(ours=False), state=closed) == (Linked(0.0, 0, "dialling"), [TryAddresses()])
    assert after(CameUp(ours=False), state=open_, now_s=1.0) == (Linked(1.0, 0, answered=True), [])


def test_a_call_is_given_up_where_the_devices_own_one_was_quicker() -> None:
    state, effects = after(CameUp(ours=False), Reached())
    assert state == Linked(since_s=0.0, failures=0, call="none", answered=True)
    assert effects == [TryAddresses(), HangUp()]


def test_a_call_that_crossed_the_devices_own_one_may_still_win_or_lose() -> None:
    crossed = after(Reached(), CameUp(ours=False))[0]
    assert crossed == Linked(since_s=0.0, failures=0, call="greeting", answered=True)
    assert after(CallFailed(LOST), state=crossed) == (Linked(0.0, 0, answered=True), [])
    assert after(CameUp(ours=True), state=crossed, now_s=1.0) == (Linked(1.0, 0, answered=True), [])


@pytest.mark.parametrize(
    ("call", "expected"), [("dialling", Calling), ("greeting", Greeting), ("none", Paused)]
)
def test_a_lost_connection_is_not_reported_and_a_call_under_way_goes_on(
    call: str, expected: type[State]
) -> None:
    linked = Linked(since_s=0.0, failures=2, call=call)  # type: ignore[arg-type]
    state, effects = after(WentDown(LOST), state=linked, now_s=1.0)
    assert isinstance(state, expected)
    assert state == expected(Tries(failures=3, trouble=LOST))  # type: ignore[call-arg, arg-type]
    assert effects == ([Pause(3)] if call == "none" else [])


def test_a_device_that_refuses_calls_after_this_laptop_slept_is_reported_as_gone() -> None:
    slept = Problem(code="link-slept", what="This laptop slept.")
    effects = after(WentDown(slept), PauseOver(), CallFailed(GONE), state=ANSWERED)[1]
    assert effects.count(TellDown(GONE)) == 1


def test_a_link_closed_without_a_word_whose_laptop_refuses_calls_is_reported_as_gone_once() -> None:
    calls: tuple[Event, ...] = (CallFailed(GONE), PauseOver())
    effects = after(WentDown(LOST), PauseOver(), *calls, *calls, *calls, state=ANSWERED)[1]
    assert effects.count(TellDown(GONE)) == 1
    silent = Problem(code="link-silent", what="It fell silent.")
    effects = after(WentDown(silent), PauseOver(), *calls, state=ANSWERED)[1]
    assert TellDown(GONE) not in effects, "it may have another address by now"
    assert TellDown(GONE) not in after(*calls, *calls)[1], "it was never there"


def test_a_laptop_whose_firewall_refused_our_calls_all_the_time_is_not_gone_for_that() -> None:
    linked = after(CallFailed(GONE), CameUp(ours=False), CallFailed(GONE))[0]
    assert linked == Linked(since_s=0.0, failures=1, answered=False)
    calls: tuple[Event, ...] = (CallFailed(GONE), PauseOver())
    assert TellDown(GONE) not in after(WentDown(LOST), PauseOver(), *calls, *calls, state=linked)[1]


def test_a_call_that_reaches_nobody_in_between_does_not_hide_that_tandem_has_ended() -> None:
    calls = (CallFailed(AWAY), PauseOver(), CallFailed(GONE), PauseOver(), CallFailed(GONE))
    state, effects = after(WentDown(LOST), PauseOver(), *calls, state=ANSWERED)
    assert effects.count(TellDown(GONE)) == 1
    again = after(PauseOver(), Reached(), CameUp(ours=True), WentDown(LOST), PauseOver(), *calls, state=state)
    assert again[1].count(TellDown(GONE)) == 1, "of the next link it is told anew"


def test_a_stable_link_counts_as_a_success() -> None:
    linked = Linked(since_s=0.0, failures=5)
    assert after(WentDown(LOST), state=linked, now_s=STEADY_S)[1][0] == Pause(1)
    assert after(WentDown(LOST), state=linked, now_s=STEADY_S - 0.1)[1][0] == Pause(6)


def test_the_devices_calls_that_fail_count_but_begin_no_call() -> None:
    state, effects = after(TheirsFailed(DIFFERS), TheirsFailed(DIFFERS))
    assert state == Calling(Tries(failures=2, trouble=DIFFERS, told="versions-differ"))
    assert effects == [TryAddresses(), TellDown(DIFFERS)]
    linked = Linked(since_s=0.0, failures=0)
    assert after(TheirsFailed(DIFFERS), state=linked) == (linked, [])


def test_a_dismissed_device_is_not_called() -> None:
    state, effects = after(
        Reached(),
        CameUp(ours=True),
        Dismissed(),
        WentDown(LOST),
        NetworkChanged(),
        PauseOver(),
        CallFailed(AWAY),
    )
    assert state == NotCalled()
    assert effects == [TryAddresses(), Greet(), EndPause(), StopDialling()]


EVENTS = st.sampled_from(
    [
        NetworkChanged(),
        PauseOver(),
        Reached(),
        CallFailed(AWAY),
        CallFailed(REFUSED),
        TheirsFailed(DIFFERS),
        CameUp(ours=False),
        CameUp(ours=True),
        WentDown(LOST),
        Dismissed(),
    ]
)


class World:
    """A driver's own state: whether a dial, a greeting, a pause and a link exist."""

    def __init__(self) -> None:
        self.call = ""
        self.paused = self.linked = self.answered = self.left = False
        self.state, effects = begun()
        self.follow(effects)

    def possible(self, event: Event) -> bool:
        match event:
            case PauseOver():
                return self.paused
            case Reached():
                return self.call == "dialling"
            case CallFailed():
                return self.call != ""
            case CameUp(ours=True):
                return self.call == "greeting"
            case CameUp() | TheirsFailed():
                return not self.left
            case WentDown():
                return self.linked
            case Dismissed():
                return not self.left
        return True

    def happens(self, event: Event) -> None:
        match event:
            case PauseOver():
                self.paused = False
            case Reached() | CallFailed():
                self.call = ""
                self.answered |= self.linked and isinstance(event, Reached)
            case CameUp(ours):
                self.answered |= ours or self.call == "greeting"
                self.linked, self.call = True, "" if ours else self.call
            case WentDown():
                self.linked = self.answered = False
            case Dismissed():
                self.left = True
        self.state, effects = step(self.state, event, 0.0)
        self.follow(effects)

    def follow(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case TryAddresses():
                    assert self.call == "" and not self.left
                    assert not (self.linked and self.answered), "one that answered need not be tried"
                    self.call = "dialling"
                case Greet():
                    assert self.call == "" and not self.linked
                    self.call = "greeting"
                case Pause(failures):
                    assert failures >= 1 and not self.paused
                    self.paused = True
                case EndPause():
                    self.paused = False
                case StopDialling():
                    self.call = self.call if self.call == "greeting" else ""


@given(st.lists(EVENTS, max_size=40))
def test_there_is_always_a_link_a_call_or_a_pause_and_never_two_calls(events: list[Event]) -> None:
    world = World()
    for event in events:
        if world.possible(event):
            world.happens(event)
        assert world.left or world.linked or (world.call != "") != world.paused
        assert isinstance(world.state, Linked) == (world.linked and not world.left)
        assert not (world.linked and world.paused)
