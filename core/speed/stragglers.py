"""Finds the slowest member: members end a shared step together, so the one that waits least is the slowest.

Pure; for the screens. The wait that all members share is the exchange itself, and nobody's fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.vocabulary.ids import DeviceId
from core.vocabulary.progress import Progress

LEAST_PART = 0.1
"""Part of a step: less waiting than this is ordinary unevenness."""
LEAST_S = 0.001


@dataclass(frozen=True, slots=True)
class Straggler:
    """The member that others wait for. ``waits_s``: seconds of each step, by device, of those that wait."""

    device: DeviceId
    step_s: float
    waits_s: dict[DeviceId, float]

    @property
    def part(self) -> float:
        """The largest part of a step (0 to 1) that any member waits for this one."""
        return max(self.waits_s.values()) / self.step_s


def straggler(members: Mapping[DeviceId, Progress | None]) -> Straggler | None:
    """The slowest of the members, if others clearly wait for it. None where it is not known."""
    timed = {
        device: (progress.wait_s, progress.step_s, progress.fit)
        for device, progress in members.items()
        if progress is not None and progress.wait_s is not None and progress.step_s
    }
    if len(timed) < max(2, len(members)) or len({fit for _, _, fit in timed.values()}) > 1:
        return None
    waits = {device: wait_s for device, (wait_s, _, _) in timed.items()}
    step_s = max(step_s for _, step_s, _ in timed.values())
    slowest = min(waits, key=lambda device: waits[device])
    least_s = max(LEAST_S, LEAST_PART * step_s)
    waiting = {
        device: waited_s - waits[slowest]
        for device, waited_s in waits.items()
        if waited_s - waits[slowest] >= least_s
    }
    return Straggler(slowest, step_s, waiting) if waiting else None
