"""Rate limits for a paired device: a budget for each kind of message. Pure.

Beyond a budget, messages that a newer one replaces anyway are dropped, and all others are read after a pause,
which delays that device only. A run of sixteen laptops whose scripts print all the time stays below every
budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.peer_messages import Message

Kind = Literal["readings", "steps", "output", "events", "changes", "questions", "messages"]


@dataclass(frozen=True, slots=True)
class Budget:
    """``rate_s``: sustained, per second; ``burst``: at once. ``counts``: the noun for the user's message."""

    rate_s: float
    burst: float
    counts: str
    replaceable: bool = False


BUDGETS: dict[Kind, Budget] = {
    "readings": Budget(5, 50, "readings", replaceable=True),
    "steps": Budget(300, 3_000, "steps of a training", replaceable=True),
    "output": Budget(1e6, 8e6, "output of scripts", replaceable=True),
    "events": Budget(200, 2_000, "events of a run"),
    "changes": Budget(20, 200, "changes of a run"),
    "questions": Budget(2, 100, "questions"),
    "messages": Budget(1_000, 6_000, "messages"),
}
"""Counted in messages; ``output`` in characters. ``messages``: all kinds together.

Each of ``changes`` is written to disk at once. Several ``questions`` reach this laptop's user, who is
protected from more by a growing pause (``core.run.admission``).
"""
_CHARACTERS = 8_192
"""Characters of output that count as one of ``messages``: dropped output was received, too."""

LEAST_PAUSE_S = 0.05
"""Shorter pauses are accumulated: each one wakes the loop."""
TOLD_PAUSE_S, TOLD_LEFT_OUT = 5.0, 1_000
"""The user is told after pauses of this total, or after so many dropped messages."""


class Ruling(NamedTuple):
    left_out: bool = False
    pause_s: float = 0.0
    """Seconds in which to read nothing more."""
    told: Kind | None = None
    """The kind whose budget was just exceeded by far for the first time."""


@dataclass(slots=True)
class _Spent:
    """What a device has used of one budget. ``debt`` 0: the whole burst is available."""

    debt: float = 0.0
    at_s: float = 0.0
    paused_s: float = 0.0
    left_out: int = 0
    told: bool = False


@dataclass(slots=True)
class Allowance:
    """One device's budgets, over all of its connections."""

    _spent: dict[Kind, _Spent] = field(default_factory=dict)

    def charge(self, message: Message, now_s: float) -> Ruling:
        """The ruling on a message that came at ``now_s`` (any monotonic clock, seconds)."""
        kind, cost = kind_of(message)
        mine = self._spend(kind, cost, now_s)
        more = cost // _CHARACTERS if kind == "output" else 0
        all_of_it = self._spend("messages", 1 + more, now_s)
        return Ruling(mine.left_out, max(mine.pause_s, all_of_it.pause_s), mine.told or all_of_it.told)

    def _spend(self, kind: Kind, cost: float, now_s: float) -> Ruling:
        budget, spent = BUDGETS[kind], self._spent.setdefault(kind, _Spent())
        spent.debt = max(0.0, spent.debt - budget.rate_s * max(0.0, now_s - spent.at_s))
        spent.at_s = now_s
        over = spent.debt + cost - budget.burst
        if over <= 0:
            spent.debt += cost
            return Ruling()
        if budget.replaceable:
            spent.left_out += 1
            return Ruling(left_out=True, told=_tell(kind, spent))
        spent.debt += cost
        if (pause_s := over / budget.rate_s) < LEAST_PAUSE_S:
            return Ruling()
        spent.paused_s += pause_s
        return Ruling(pause_s=pause_s, told=_tell(kind, spent))


def _tell(kind: Kind, spent: _Spent) -> Kind | None:
    if spent.told or (spent.paused_s < TOLD_PAUSE_S and spent.left_out < TOLD_LEFT_OUT):
        return None
    spent.told = True
    return kind


def kind_of(message: Message) -> tuple[Kind, float]:
    """The budget that a message is charged to, and its cost."""
    match message:
        case ms.TelemetrySent():
            return "readings", 1
        case ms.EventTold(event=event):
            return _kind_of_event(event)
        case ms.StatusTold():
            return "events", 1
        case ms.CheckpointWanted(checkpoint=None):  # cancelled
            return "events", 1
        case ms.Prepare() | ms.ModulesAsked() | ms.LoadAsked() | ms.ReachAsked():
            return "questions", 1
        case ms.CheckpointAsked() | ms.CheckpointWanted() | ms.ReportSent() | ms.InstallAsked():
            return "questions", 1
    return "changes", 1


def _kind_of_event(event: ev.MirroredEvent) -> tuple[Kind, float]:
    match event:
        case ev.MemberProgressed() | ev.MemberEndedEpoch() | ev.WaitingChanged():
            return "steps", 1
        case ev.MemberPhaseChanged(phase="receiving"):
            return "steps", 1
        case ev.MemberLogged(lines=lines) if lines.stream != "tandem":
            return "output", len(lines.text) + 100
        case ev.RunPlanned() | ev.RunPhaseChanged() | ev.MemberMeasured() | ev.RunSummarised():
            return "changes", 1
    return "events", 1
