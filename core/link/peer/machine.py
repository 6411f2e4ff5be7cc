"""Decides when a paired device is called, without I/O: at once, after a growing pause, never while there is a
link.

One call at a time. The device's own call may become the link while ours is under way; the connection with the
higher number stays.
"""

from __future__ import annotations

import math
from dataclasses import replace

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
from core.net.tls import NOBODY_LISTENS
from core.vocabulary.errors import Problem

STEADY_S = 10.0
"""A link that lasted this long was a success: the next pauses are short again."""

RECENT_S, SOON = 600.0, 3
"""For ``RECENT_S`` after a stable link was lost, pauses stay as short as after ``SOON`` failures: the laptop
may be in a run, and nothing here shows when a switch between the two works again."""
MOST_RESTARTS = 3
"""How often a network change may restart one call. Anybody can send mDNS, and must not keep a call from
ending."""

_FOR_A_PERSON = frozenset({"link-refused", "versions-differ", "link-bad-hello", "bad-frame"})
"""Failures that a person has to fix: not a laptop that is away, nor another device at its old address."""

_CLOSED = frozenset({"link-closed", "link-slept"})
"""Links that were closed without a goodbye: the second while this laptop slept."""

Step = tuple[State, tuple[Effect, ...]]


def begun() -> Step:
    """A device is called as soon as it is known."""
    return Calling(Tries()), (TryAddresses(),)


def step(state: State, event: Event, now_s: float) -> Step:
    """``now_s``: any monotonic clock, seconds. Late events change nothing."""
    match state, event:
        case NotCalled(), _:
            return state, ()
        case _, Dismissed():
            return NotCalled(), (EndPause(), StopDialling())
        case Paused(tries), NetworkChanged():
            return Calling(replace(tries, failures=0)), (EndPause(), TryAddresses())
        case Calling(tries), NetworkChanged() if tries.restarts < MOST_RESTARTS:
            # The call's first packets may be lost, and TCP would resend them only seconds later.
            return Calling(replace(tries, failures=0, restarts=tries.restarts + 1)), (
                StopDialling(),
                TryAddresses(),
            )
        case Calling(tries) | Greeting(tries), NetworkChanged():
            return replace(state, tries=replace(tries, failures=0)), ()
        case Paused(tries), PauseOver():
            return Calling(tries), (TryAddresses(),)
        case Calling(tries), Reached():
            return Greeting(tries), (Greet(),)
        case Linked(), Reached():
            return replace(state, call="none", answered=True), (HangUp(),)
        case Calling(tries) | Greeting(tries), CallFailed(problem):
            tries, told = _failed(tries, problem)
            is_recent = now_s - tries.linked_s < RECENT_S
            return Paused(tries), (Pause(min(tries.failures, SOON) if is_recent else tries.failures), *told)
        case Linked(), CallFailed():
            return replace(state, call="none"), ()
        case Calling(tries) | Greeting(tries) | Paused(tries), TheirsFailed(problem):
            tries, told = _failed(tries, problem)
            return replace(state, tries=tries), told
        case _, CameUp(ours):
            return _linked(state, ours, now_s)
        case Linked(), WentDown(problem):
            return _unlinked(state, problem, now_s)
    return state, ()


def _failed(tries: Tries, problem: Problem) -> tuple[Tries, tuple[Effect, ...]]:
    again = tries.trouble is not None and tries.trouble.code == problem.code
    after = replace(tries, failures=tries.failures + 1, trouble=problem, restarts=0)
    if problem.code == NOBODY_LISTENS and tries.refusal_tells:
        return replace(after, refusal_tells=False), (TellDown(problem),)
    # One failure may be chance: right after pairing, this side may call before the other has stored the
    # pairing.
    if again and problem.code in _FOR_A_PERSON and problem.code != tries.told:
        return replace(after, told=problem.code), (TellDown(problem),)
    return after, ()


def _linked(state: State, ours: bool, now_s: float) -> Step:
    """After the device itself called, one call of ours tests if its port is open: see ``refusal_tells``."""
    match state:
        case Calling(tries):
            return Linked(now_s, tries.failures, "none" if ours else "dialling", answered=ours), ()
        case Greeting(tries):
            return Linked(now_s, tries.failures, "none" if ours else "greeting", answered=True), ()
        case Paused(tries):
            return Linked(now_s, tries.failures, "dialling"), (EndPause(), TryAddresses())
        case Linked() if ours or state.answered or state.call != "none":
            call = "none" if ours else state.call
            return replace(state, since_s=now_s, call=call, answered=state.answered or ours), ()
        case Linked():
            return replace(state, since_s=now_s, call="dialling"), (TryAddresses(),)
    return state, ()


def _unlinked(state: Linked, problem: Problem, now_s: float) -> Step:
    steady = now_s - state.since_s >= STEADY_S
    tries = Tries(
        failures=1 if steady else state.failures + 1,
        trouble=problem,
        linked_s=now_s if steady else -math.inf,
        refusal_tells=state.answered and problem.code in _CLOSED,
    )
    match state.call:
        case "dialling":
            return Calling(tries), ()
        case "greeting":
            return Greeting(tries), ()
    return Paused(tries), (Pause(tries.failures),)
