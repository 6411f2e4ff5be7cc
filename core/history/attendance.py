"""Who came to a run and who went, told from its events; and where on its axis a moment of it lies. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from core.vocabulary import events as ev
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import Change
from core.vocabulary.phases import Stopping, ended


class Turn(NamedTuple):
    device: DeviceId
    change: Change
    words: str = ""


class Attendance:
    """``hear`` every event of one run. Once it stops nobody comes back: waiting for somebody only ends."""

    def __init__(self) -> None:
        self._joined: set[DeviceId] = set()
        self._away: set[DeviceId] = set()
        self._left: set[DeviceId] = set()
        self._stopping = False

    def hear(self, event: Event) -> list[Turn]:
        match event:
            case ev.RunPhaseChanged(phase=phase):
                self._stopping = self._stopping or isinstance(phase, Stopping) or ended(phase)
            case ev.MemberPhaseChanged(device=device, phase="training") if device not in self._joined:
                self._joined.add(device)
                return [Turn(device, "joined")]
            case ev.WaitingChanged(waits=waits) if not self._stopping:
                return self._wait({wait.device for wait in waits if wait.cause == "away"})
            case ev.MemberEnded(device=device, exit=end) if end.problem is not None:
                return self._leave(device, end.problem.what)
        return []

    def _wait(self, away: set[DeviceId]) -> list[Turn]:
        went, came = sorted(away - self._away), sorted(self._away - away - self._left)
        self._away = away
        return [*(Turn(device, "away") for device in went), *(Turn(device, "back") for device in came)]

    def _leave(self, device: DeviceId, why: str) -> list[Turn]:
        if device in self._left:
            return []
        self._left.add(device)
        return [Turn(device, "left", why)]


class Track:
    """A run's reports in order, ``(second, step)``: where it was at a second. Neither ever falls."""

    def __init__(self, reports: Sequence[tuple[float, float]]) -> None:
        self._seconds: list[float] = []
        self._steps: list[float] = []
        for second, step in sorted(reports):
            self._seconds.append(second)
            self._steps.append(max(step, self._steps[-1]) if self._steps else step)

    def step(self, second: float) -> float | None:
        """Of the newest report by then; None before the first."""
        at = bisect_right(self._seconds, second)
        return self._steps[at - 1] if at else None
