"""Derives from a run's events when members joined and left, and a run's step at a given second. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import Change, gone
from core.vocabulary.phases import Exit, Stopping, ended

_CONSEQUENCES = ("lost-peer", "never-met", "stopped")
"""Exits of trainers that ended because another one did, or with the run."""
_STOPPED = "stop-forced"
"""Code of a trainer that Tandem itself ended."""


class MemberChange(NamedTuple):
    device: DeviceId
    change: Change
    words: str = ""


class Attendance:
    """Pass every event of one run to ``on_event``. Once the run is stopping, members neither come back nor
    become away."""

    def __init__(self) -> None:
        self._joined: set[DeviceId] = set()
        self._away: set[DeviceId] = set()
        self._left: set[DeviceId] = set()
        self._done: set[DeviceId] = set()
        self._absent: set[DeviceId] = set()
        self._stopping = False

    def recall(self, device: DeviceId, change: Change) -> None:
        """Take over a change from the resumed run: members that had left are back once they join."""
        if change in ("left", "lost", "away"):
            self._absent.add(device)
        else:
            self._absent.discard(device)

    def on_event(self, event: Event) -> list[MemberChange]:
        """The changes that follow from an event."""
        match event:
            case ev.RunPhaseChanged(phase=phase):
                self._stopping = self._stopping or isinstance(phase, Stopping) or ended(phase)
            case ev.MemberPhaseChanged(device=device, phase="training") if device not in self._joined:
                self._joined.add(device)
                return [MemberChange(device, "back" if device in self._absent else "joined")]
            case ev.WaitingChanged(waits=waits) if not self._stopping:
                return self._wait({wait.device for wait in waits if wait.cause == "away"})
            case ev.MemberPhaseChanged(device=device, phase="ended", words=words) if words:
                if not self._stopping and device not in self._done:
                    return self._go(MemberChange(device, "lost", words))
            case ev.MemberLeft(device=device, problem=why):
                return self._go(MemberChange(device, gone(why), why.what))
            case ev.MemberEnded(device=device, exit=Exit(problem=None)):
                self._done.add(device)
            case ev.MemberEnded(device=device, exit=Exit(reason="script-error", problem=Problem() as why)):
                return self._go(MemberChange(device, "left", why.what))
            case ev.MemberEnded(device=device, exit=Exit(problem=Problem() as why) as end) if _by_itself(end):
                return self._go(MemberChange(device, gone(why), why.what))
        return []

    def _wait(self, away: set[DeviceId]) -> list[MemberChange]:
        went, came = sorted(away - self._away), sorted(self._away - away - self._left)
        self._away = away
        return [
            *(MemberChange(device, "away") for device in went),
            *(MemberChange(device, "back") for device in came),
        ]

    def _go(self, turn: MemberChange) -> list[MemberChange]:
        if turn.device in self._left:
            return []
        self._left.add(turn.device)
        return [turn]


def _by_itself(end: Exit) -> bool:
    """Whether a trainer ended by a failure of its own, not because of a lost member or the run's end."""
    code = end.problem.code if end.problem is not None else ""
    return end.reason not in _CONSEQUENCES and code != _STOPPED


class Track:
    """A run's step at a given second, from its reports as ``(second, step)``. Neither ever falls."""

    def __init__(self, reports: Sequence[tuple[float, float]]) -> None:
        self._seconds: list[float] = []
        self._steps: list[float] = []
        for second, step in sorted(reports):
            self._seconds.append(second)
            self._steps.append(max(step, self._steps[-1]) if self._steps else step)

    def step(self, second: float) -> float | None:
        """The step of the newest report by then; None before the first."""
        at = bisect_right(self._seconds, second)
        return self._steps[at - 1] if at else None
