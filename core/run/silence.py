"""The system ends this node while a run trains that was started here: nothing is said about its end, as in a
crash. The others go on without their starter, and the next start finds the run cut off. On the core loop."""

from __future__ import annotations

from core.run.coordinator.driver import CoordinatorDriver
from core.run.participant.driver import ParticipantDriver


async def fall_silent(starter: CoordinatorDriver, member: ParticipantDriver | None) -> None:
    """Returns once no trainer runs here any more."""
    starter.fall_silent()
    if member is not None:
        await member.fall_silent()
