"""Who waits for whom in a run, in words, and how a member's last step went. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from app.run_words import Share, share_of
from core.ids import DeviceId
from core.run import expectation
from core.run.stragglers import straggler
from core.state import Run


class Step(NamedTuple):
    """One member's last step in seconds."""

    took_s: float
    waited_s: float
    share: Share | None = None

    @property
    def waiting(self) -> float:
        """The part of the step spent waiting, 0 to 1."""
        return min(1.0, max(0.0, self.waited_s / self.took_s)) if self.took_s > 0 else 0.0


def steps_of(run: Run | None) -> dict[DeviceId, Step]:
    """Of the members that train and say how long they waited."""
    if run is None or run.over:
        return {}
    return {
        device: Step(member.progress.step_s, member.progress.wait_s, share_of(run, device))
        for device, member in run.members.items()
        if member.phase == "training"
        and member.progress is not None
        and member.progress.step_s is not None
        and member.progress.wait_s is not None
    }


def waiting_words(run: Run | None, names: Mapping[DeviceId, str]) -> str:
    """``Ada waits for Bob: 34 % of each step. …``; ``""`` where nobody does."""
    if run is None or run.over or any(member.phase != "training" for member in run.members.values()):
        return ""
    found = straggler({device: member.progress for device, member in run.members.items()})
    if found is None:
        return ""
    slowest = names[found.device]
    parts = [
        f"{names[device]} waits for {slowest} {100 * waits_s / found.step_s:.0f} % of each step"
        for device, waits_s in found.waits_s.items()
    ]
    words = f"{'; '.join(parts)}."
    # Where shares follow the speeds, they will.
    return (
        words if run.plan.balance else f"{words} A smaller share for {slowest} would make all of them faster."
    )


def wire_words(run: Run | None) -> str:
    """``The wire takes 22 % of a step (1.2 MB each way).``; ``""`` where no member says so."""
    if run is None or run.over:
        return ""
    progress = run.members[run.plan.chief.device].progress
    if progress is None:
        return ""
    sent = progress.wire_bytes
    if sent is None and run.expectation is not None:
        sent = run.expectation.wire_bytes
    words = expectation.wire_words(progress.wire_s, progress.step_s, sent)
    return f"{words}." if words else ""


def step_words(step: Step) -> str:
    return f"{_time(step.took_s - step.waited_s)}, {_time(step.waited_s)} waiting"


def _time(seconds: float) -> str:
    seconds = max(0.0, seconds)
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
