"""Who waits for whom in a run, in words, and each member's last step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from app.words.run_words import Share, share_of
from core.speed import sentences
from core.speed.stragglers import Straggler, straggler
from core.vocabulary import units
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.state import Run

SAY_AFTER_S = 3.0
KEEP_S = 5.0
RENEW_S = 2.0


class StepTime(NamedTuple):
    """One member's last step in seconds."""

    took_s: float
    waited_s: float
    share: Share | None = None

    @property
    def waiting(self) -> float:
        """The fraction of the step spent waiting, 0 to 1."""
        return min(1.0, max(0.0, self.waited_s / self.took_s)) if self.took_s > 0 else 0.0


def steps_of(run: Run | None) -> dict[DeviceId, StepTime]:
    """Members that train and report how long they waited."""
    if run is None or run.over:
        return {}
    return {
        device: StepTime(member.progress.step_s, member.progress.wait_s, share_of(run, device))
        for device, member in run.members.items()
        if member.phase == "training"
        and member.progress is not None
        and member.progress.step_s is not None
        and member.progress.wait_s is not None
    }


def who_waits(run: Run | None, names: Mapping[DeviceId, str]) -> str:
    """``Ada waits for Bob 34 % of each step``; ``""`` if nobody does."""
    found = _found(run)
    if found is None:
        return ""
    return "; ".join(
        f"{names[device]} waits for {names[found.device]} {100 * waits_s / found.step_s:.0f} % of each step"
        for device, waits_s in found.waits_s.items()
    )


def waiting_words(run: Run | None, names: Mapping[DeviceId, str]) -> str:
    """``who_waits`` as a sentence, with advice."""
    found = _found(run)
    if run is None or found is None:
        return ""
    words = f"{who_waits(run, names)}."
    # Shares that follow the speeds will even this out.
    return (
        words
        if run.plan.balance
        else f"{words} A smaller share for {names[found.device]} would make all of them faster."
    )


def _found(run: Run | None) -> Straggler | None:
    if run is None or run.over or any(member.phase != "training" for member in run.staying.values()):
        return None
    return straggler({device: member.progress for device, member in run.staying.items()})


class WaitingShown:
    """Steady ``waiting_words``: shown after somebody has waited for a while, kept well beyond the end, and
    updated only occasionally. ``clock``: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._run: RunId | None = None
        self._slowest: DeviceId | None = None
        """The laptop named as waited for."""
        self._words = ""
        self._agreed_s = self._said_s = 0.0

    def words(self, run: Run | None, names: Mapping[DeviceId, str]) -> str:
        now_s = self._clock()
        if run is None or run.over or run.plan.run != self._run:
            self._run = run.plan.run if run is not None else None
            self._slowest, self._words, self._agreed_s = None, "", now_s
            return ""
        words = waiting_words(run, names)
        found = straggler({device: member.progress for device, member in run.staying.items()})
        slowest = found.device if found is not None and words else None
        if slowest == self._slowest:
            self._agreed_s = now_s
            renew = now_s - self._said_s >= RENEW_S
        else:
            renew = now_s - self._agreed_s >= (SAY_AFTER_S if self._slowest is None else KEEP_S)
        if renew:
            self._slowest, self._words = slowest, words
            self._agreed_s = self._said_s = now_s
        return self._words


def wire_words(run: Run | None) -> str:
    """``22 % of each step is network transfer (1.2 MB each way).``; ``""`` if no member reports it."""
    if run is None or run.over:
        return ""
    progress = run.members[run.chief.device].progress
    if progress is None:
        return ""
    sent = progress.wire_bytes
    if sent is None and run.expectation is not None:
        sent = run.expectation.wire_bytes
    words = sentences.wire_words(progress.wire_s, progress.step_s, sent)
    return f"{words}." if words else ""


def step_words(step: StepTime) -> str:
    return f"{units.duration(step.took_s - step.waited_s)}, {units.duration(step.waited_s)} waiting"
