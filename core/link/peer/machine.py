"""When a paired device is called, without I/O: at once, after a growing pause, not while there is a link.

One call at a time. The device's own call may become the link while ours is under way; the tie-break says
which of the two stays.
"""

from __future__ import annotations

from dataclasses import replace

from core.link.peer.state import (
    CallFailed,
    CameUp,
    Dial,
    Dialling,
    Effect,
    EndPause,
    Event,
    Greet,
    Greeting,
    HangUp,
    Hoped,
    Leaving,
    Left,
    Linked,
    Pause,
    Paused,
    PauseOver,
    Reached,
    State,
    StopDialling,
    TellDown,
    TheirsFailed,
    Tries,
    WentDown,
)
from core.net.tls import NOBODY_LISTENS
from core.vocabulary.errors import Problem

STEADY_S = 10.0
"""A link that stood this long was a success: the next pauses are short again."""

_TOLD = frozenset({"link-refused", "versions-differ", "link-bad-hello", "bad-frame"})
"""Calls that fail for a reason which a person has to mend. A laptop that is not there is no such thing, and
neither is another device at an address where this one was before."""

_CLOSED = frozenset({"link-closed", "link-slept"})
"""Links that were closed without a word: the second while this laptop slept."""

Step = tuple[State, tuple[Effect, ...]]


def begun() -> Step:
    """A device is called as soon as it is known."""
    return Dialling(Tries()), (Dial(),)


def step(state: State, event: Event, now_s: float) -> Step:
    """``now_s``: any monotonic clock, seconds. What comes too late changes nothing."""
    match state, event:
        case Left(), WentDown(problem):
            return state, (TellDown(problem),)
        case Left(), _:
            return state, ()
        case _, Leaving():
            # What the link still has to say it says while it ends: WentDown is to come.
            return Left(), (EndPause(), StopDialling())
        case Paused(tries), Hoped():
            return Dialling(replace(tries, failures=0)), (EndPause(), Dial())
        case Dialling(tries) | Greeting(tries), Hoped():
            return replace(state, tries=replace(tries, failures=0)), ()
        case Paused(tries), PauseOver():
            return Dialling(tries), (Dial(),)
        case Dialling(tries), Reached():
            return Greeting(tries), (Greet(),)
        case Linked(), Reached():
            return replace(state, call="none", answered=True), (HangUp(),)
        case Dialling(tries) | Greeting(tries), CallFailed(problem):
            tries, told = _failed(tries, problem)
            return Paused(tries), (Pause(tries.failures), *told)
        case Linked(), CallFailed():
            return replace(state, call="none"), ()
        case Dialling(tries) | Greeting(tries) | Paused(tries), TheirsFailed(problem):
            tries, told = _failed(tries, problem)
            return replace(state, tries=tries), told
        case _, CameUp(ours):
            return _linked(state, ours, now_s)
        case Linked(), WentDown(problem):
            return _unlinked(state, problem, now_s)
    return state, ()


def _failed(tries: Tries, problem: Problem) -> tuple[Tries, tuple[Effect, ...]]:
    again = tries.trouble is not None and tries.trouble.code == problem.code
    after = replace(tries, failures=tries.failures + 1, trouble=problem)
    if problem.code == NOBODY_LISTENS and tries.refusal_tells:
        return replace(after, refusal_tells=False), (TellDown(problem),)
    # Once may be chance: right after pairing, this side may be quicker to call than the other to store.
    if again and problem.code in _TOLD and problem.code != tries.told:
        return replace(after, told=problem.code), (TellDown(problem),)
    return after, ()


def _linked(state: State, ours: bool, now_s: float) -> Step:
    """Where the device called, one call of ours tries whether its port is open: see ``refusal_tells``."""
    match state:
        case Dialling(tries):
            return Linked(now_s, tries.failures, "none" if ours else "dialling", answered=ours), ()
        case Greeting(tries):
            return Linked(now_s, tries.failures, "none" if ours else "greeting", answered=True), ()
        case Paused(tries):
            return Linked(now_s, tries.failures, "dialling"), (EndPause(), Dial())
        case Linked() if ours or state.answered or state.call != "none":
            call = "none" if ours else state.call
            return replace(state, since_s=now_s, call=call, answered=state.answered or ours), ()
        case Linked():
            return replace(state, since_s=now_s, call="dialling"), (Dial(),)
    return state, ()


def _unlinked(state: Linked, problem: Problem, now_s: float) -> Step:
    steady = now_s - state.since_s >= STEADY_S
    tries = Tries(
        failures=1 if steady else state.failures + 1,
        trouble=problem,
        refusal_tells=state.answered and problem.code in _CLOSED,
    )
    match state.call:
        case "dialling":
            return Dialling(tries), (TellDown(problem),)
        case "greeting":
            return Greeting(tries), (TellDown(problem),)
    return Paused(tries), (Pause(tries.failures), TellDown(problem))
