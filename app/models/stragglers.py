"""Who waits for whom in a run, from what each member says of its last step. Pure."""

from __future__ import annotations

from typing import NamedTuple

from core.ids import DeviceId
from core.state import Run

WORTH_SAYING = 0.15
"""A part of each step spent waiting that people should know of."""


class Step(NamedTuple):
    """One member's last step in seconds."""

    took_s: float
    waited_s: float

    @property
    def waiting(self) -> float:
        """The part of the step spent waiting, 0 to 1."""
        return min(1.0, max(0.0, self.waited_s / self.took_s)) if self.took_s > 0 else 0.0


def steps_of(run: Run | None) -> dict[DeviceId, Step]:
    """Of the members that train and say how long they waited."""
    if run is None or run.over:
        return {}
    return {
        device: Step(member.progress.step_s, member.progress.wait_s)
        for device, member in run.members.items()
        if member.phase == "training"
        and member.progress is not None
        and member.progress.step_s is not None
        and member.progress.wait_s is not None
    }


def straggler(steps: dict[DeviceId, Step]) -> DeviceId | None:
    """The member that the others wait for; None where nobody waits worth a word."""
    if len(steps) < 2:
        return None
    slowest = min(steps, key=lambda device: steps[device].waiting)
    rest = [step.waiting for device, step in steps.items() if device != slowest]
    return slowest if max(rest) - steps[slowest].waiting >= WORTH_SAYING else None


def waiting_words(steps: dict[DeviceId, Step], names: dict[DeviceId, str]) -> str:
    """``Ada waits for Bob: 34 % of each step. …``; ``""`` where nobody does."""
    slowest = straggler(steps)
    if slowest is None:
        return ""
    parts = [
        f"{names[device]} waits for {names[slowest]} {100 * step.waiting:.0f} % of each step"
        for device, step in steps.items()
        if device != slowest and step.waiting - steps[slowest].waiting >= WORTH_SAYING
    ]
    return f"{'; '.join(parts)}. A smaller share for {names[slowest]} would make all of them faster."


def step_words(step: Step) -> str:
    return f"{_time(step.took_s - step.waited_s)}, {_time(step.waited_s)} waiting"


def _time(seconds: float) -> str:
    seconds = max(0.0, seconds)
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
