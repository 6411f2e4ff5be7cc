"""One link's protocol without I/O: hello both ways, versions compared, heartbeats, silence, goodbye.

``step`` takes what happened and the time (any monotonic clock, seconds) and says what to do.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from core.link import problems
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
    Sleep,
    State,
    Ticked,
    Up,
)
from core.vocabulary import versions
from core.vocabulary.errors import Problem
from core.vocabulary.peer_messages import Bye, Hello, Ping

HEARTBEAT_S = 2.0
SILENT_S = 10.0
AFTER_SLEEP_S = 30.0
"""For so long after this laptop slept a link that ends is no fault of the peer's."""

Step = tuple[State, tuple[Effect, ...]]


def dialled(mine: Hello, name: str, now_s: float) -> Step:
    """This side opened the connection: it speaks first."""
    return Opening(mine=mine, name=name, heard_s=now_s, ticked_s=now_s), (Send(mine),)


def accepted(mine: Hello, theirs: Hello, name: str, now_s: float) -> Step:
    """The other side opened the connection and said ``theirs``."""
    state, effects = _met(mine, theirs, name, now_s)
    return state, (Send(mine), *effects)


def step(state: State, event: Event, now_s: float) -> Step:
    match state, event:
        case Over(), _:
            return state, ()
        case _, Leaving(problem):
            return Over(problem), (Send(Bye(problem=problem)), End(problem))
        case Opening() | Up(), Broken(problem):
            return _over(_whose_fault(state, problem, now_s))
        case Opening() | Up(), Received(Bye(problem=problem)) if problem.code == "link-silent":
            return _over(_whose_fault(state, problem, now_s))
        case _, Received(Bye(problem=problem)):
            return _over(problem)
        case Opening() | Up(), Ticked():
            return _ticked(state, now_s)
        case Opening(), Received(Hello() as theirs):
            return _met(state.mine, theirs, state.name, now_s)
        case Up(), Received(message) if not isinstance(message, Hello):
            heard = replace(state, heard_s=now_s)
            return heard, () if isinstance(message, Ping) else (Deliver(message),)
        case Opening() | Up(), Received(message):
            problem = problems.out_of_turn(state.name, type(message).__name__)
            return Over(problem), (Send(Bye(problem=problem)), End(problem))
        case _:
            raise TypeError(f"{event} is no event of a link")


def _ticked(state: Opening | Up, now_s: float) -> Step:
    # Time in which this laptop itself slept or stood still is no silence of the peer's.
    slept_s = max(0.0, now_s - state.ticked_s - 2 * HEARTBEAT_S)
    heard_s = min(now_s, state.heard_s + slept_s)
    state = replace(state, sleep=_last_sleep(state, now_s))
    if now_s - heard_s >= SILENT_S:
        return _over(_whose_fault(state, problems.silent(state.name, SILENT_S), now_s))
    beats: tuple[Effect, ...] = (Send(Ping()),) if isinstance(state, Up) else ()
    return replace(state, heard_s=heard_s, ticked_s=now_s), beats


def _last_sleep(state: Opening | Up, now_s: float) -> Sleep | None:
    """Heard of at the first tick after it, or by what comes before that."""
    gap_s = now_s - state.ticked_s - HEARTBEAT_S
    return Sleep(now_s, gap_s) if gap_s > HEARTBEAT_S else state.sleep


def _whose_fault(state: Opening | Up, problem: Problem, now_s: float) -> Problem:
    """A link that ends soon after this laptop slept ends by that."""
    sleep = _last_sleep(state, now_s)
    if sleep is None or now_s - sleep.until_s > AFTER_SLEEP_S:
        return problem
    return structs.replace(problems.slept(state.name, sleep.seconds), detail=str(problem))


def _met(mine: Hello, theirs: Hello, name: str, now_s: float) -> Step:
    if mine.versions.protocol != theirs.versions.protocol:
        # Both sides have both hellos and come to the same verdict: not a word beyond them.
        return _over(versions.difference(mine.versions, theirs.versions, name) or problems.bad_hello(name))
    return Up(name=name, heard_s=now_s, ticked_s=now_s), (CameUp(theirs),)


def _over(problem: Problem) -> Step:
    return Over(problem), (End(problem),)
