"""Tracks each meeting and decides what follows from events. Pure: no I/O, no clock, no arrays.

Sum of two: each sends its part to the other, and both add in rank order. Sum of more: each sends every other
member the elements that it owns, and gets back their sum (reduce-scatter, all-gather). Gather: each sends
everybody everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from core.exchange import problems
from core.exchange.state import (
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
    Left,
    Meeting,
    Phase,
    Regrouped,
    Send,
    State,
    Take,
    Taken,
)
from core.vocabulary.errors import IllegalTransition, Problem

Step = tuple[State, tuple[Effect, ...]]

REMEMBERED_STEPS = 1
"""A new meeting may be at most this many steps older than the newest result taken."""


def step(state: State, event: Event) -> Step:
    """The next state, and effects. Raises ``IllegalTransition`` for a bug of this member's caller: a pack
    handed over twice, or a return to an earlier generation."""
    match event:
        case HandedOver():
            return _handed_over(state, event)
        case Announced():
            return _announced(state, event)
        case Arrived(rank, key, phase):
            return _arrived(state, rank, key, phase)
        case Added(key):
            return _added(state, key)
        case Taken(key):
            return _taken(state, key)
        case Regrouped(generation, attempt, gone):
            return _regrouped(state, (generation, attempt), gone)
        case Left(rank, problem):
            if rank in state.left or rank in state.gone:
                return state, ()
            return _settled_all(replace(state, left={**state.left, rank: problem}))
        case Closed(problem):
            return _closed(state, problem)


def others(state: State) -> Iterator[int]:
    return (rank for rank in state.present if rank != state.rank)


def missing(state: State, key: Key) -> set[tuple[int, Phase]]:
    """The messages that this member still has to receive for a meeting after bringing its own pack."""
    meeting = state.meetings.get(key)
    if meeting is None or meeting.call is None or meeting.is_over:
        return set()
    needed: set[tuple[int, Phase]] = {(rank, "part") for rank in others(state)}
    if meeting.call.kind == "sum" and len(state.present) > 2:
        needed |= {(rank, "total") for rank in others(state)}
    return needed - meeting.arrived


def _handed_over(state: State, event: HandedOver) -> Step:
    key, call = event.key, event.call
    if state.closed:
        return state, (Fail(key, state.closed),)
    if key[:2] < state.floor:
        return state, (Fail(key, problems.old(key, state.floor)),)
    meeting = state.meetings.get(key, Meeting())
    if meeting.call is not None or key in state.taken:
        raise IllegalTransition(f"{key} was handed over twice")
    # Send even if there is a mismatch: the others must find it, too.
    sends = tuple(Send(rank, key, "part") for rank in others(state))
    state = _with(state, key, replace(meeting, call=call))
    for (rank, _), theirs in meeting.announced.items():
        if not call.fits(theirs):
            state, failed = _fail(state, key, _mismatch(state, rank, theirs, call, key))
            return state, (*sends, *failed)
    state, effects = _settled(state, key)
    return state, (*sends, *effects)


def _announced(state: State, event: Announced) -> Step:
    rank, key, phase, theirs = event.rank, event.key, event.phase, event.call
    meeting = state.meetings.get(key)
    if state.closed or key[:2] < state.floor or key in state.taken or rank in state.gone:
        return state, ()
    if meeting is None:
        if _is_past(state, key):
            return state, ()
        meeting = Meeting()
    if meeting.is_over or (rank, phase) in meeting.announced:
        return state, ()
    if phase == "total" and (meeting.call is None or meeting.call.kind != "sum" or len(state.present) <= 2):
        return state, ()  # nobody can have added this member's pack before it was brought
    state = _with(state, key, replace(meeting, announced={**meeting.announced, (rank, phase): theirs}))
    if meeting.call is not None and not meeting.call.fits(theirs):
        return _fail(state, key, _mismatch(state, rank, theirs, meeting.call, key))
    return state, (Take(rank, key, phase),)


def _arrived(state: State, rank: int, key: Key, phase: Phase) -> Step:
    meeting = state.meetings.get(key)
    if meeting is None or meeting.is_over:
        return state, ()
    return _settled(_with(state, key, replace(meeting, arrived=meeting.arrived | {(rank, phase)})), key)


def _added(state: State, key: Key) -> Step:
    meeting = state.meetings.get(key)
    if meeting is None or meeting.is_over or meeting.added:
        return state, ()
    sends = tuple(Send(rank, key, "total") for rank in others(state)) if len(state.present) > 2 else ()
    state, effects = _settled(_with(state, key, replace(meeting, added=True)), key)
    return state, (*sends, *effects)


def _settled(state: State, key: Key) -> Step:
    """The next step of a meeting: adding, completion, or failure when a needed part can no longer arrive."""
    meeting = state.meetings[key]
    if meeting.call is None or meeting.is_over:
        return state, ()
    needed = missing(state, key)
    for rank, _ in sorted(needed):
        if rank in state.left:
            own = state.name(state.rank), meeting.call
            return _fail(state, key, problems.left(state.name(rank), state.left[rank], *own))
    if meeting.call.kind == "sum" and not meeting.adding:
        if any(phase == "part" for _, phase in needed):
            return state, ()
        return _with(state, key, replace(meeting, adding=True)), (Add(key),)
    if needed or (meeting.call.kind == "sum" and not meeting.added):
        return state, ()
    return _with(state, key, replace(meeting, is_over=True)), (Complete(key),)


def _settled_all(state: State) -> Step:
    effects: list[Effect] = []
    for key in state.meetings:
        state, more = _settled(state, key)
        effects += more
    return state, tuple(effects)


def _taken(state: State, key: Key) -> Step:
    newest = max(state.newest, key[:3])
    meetings = {other: meeting for other, meeting in state.meetings.items() if other != key}
    moves_on = newest != state.newest
    state = replace(state, newest=newest, meetings=meetings, taken=state.taken | {key})
    if not moves_on:
        return state, (Discard(key),)
    state = replace(state, taken=frozenset(each for each in state.taken if not _is_past(state, each)))
    # Packs for meetings that this member skipped and will never join.
    unwanted = [each for each, meeting in meetings.items() if meeting.call is None and _is_past(state, each)]
    state = replace(
        state, meetings={each: meeting for each, meeting in meetings.items() if each not in unwanted}
    )
    return state, tuple(map(Discard, [key, *unwanted]))


def _is_past(state: State, key: Key) -> bool:
    generation, attempt, newest = state.newest
    return key[:3] < (generation, attempt, newest - REMEMBERED_STEPS)


def _regrouped(state: State, floor: tuple[int, int], gone: frozenset[int]) -> Step:
    if floor < state.floor:
        raise IllegalTransition(f"from generation and attempt {state.floor} back to {floor}")
    state = replace(state, floor=floor, gone=state.gone | gone)
    effects: list[Effect] = []
    for key, meeting in state.meetings.items():
        if key[:2] < floor:
            if meeting.call is not None and not meeting.is_over:
                effects.append(Fail(key, problems.old(key, floor)))
            effects.append(Discard(key))
    meetings = {key: meeting for key, meeting in state.meetings.items() if key[:2] >= floor}
    return replace(state, meetings=meetings), tuple(effects)


def _closed(state: State, problem: Problem) -> Step:
    if state.closed:
        return state, ()
    state = replace(state, closed=problem)
    effects: list[Effect] = []
    for key, meeting in state.meetings.items():
        if not meeting.is_over:
            state, failed = _fail(state, key, problem)
            effects += failed
    return state, tuple(effects)


def _mismatch(state: State, rank: int, theirs: Call, own: Call, key: Key) -> Problem:
    wants = {rank: theirs, state.rank: own}
    return problems.mismatch([(state.name(each), wants[each]) for each in sorted(wants)], key)


def _fail(state: State, key: Key, problem: Problem) -> Step:
    return _with(state, key, replace(state.meetings[key], is_over=True)), (Fail(key, problem),)


def _with(state: State, key: Key, meeting: Meeting) -> State:
    return replace(state, meetings={**state.meetings, key: meeting})
