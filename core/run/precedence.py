"""Decides which run goes first when two people press Train at once, each with the other's laptop. Pure.

Every laptop reaches the same answer from the two plans alone: the run with the smaller id, which begins with
the time of its making, goes first. The starter of the other one gives way: it ends its own run before
anything was started, and is asked to take part in the first. A third laptop that both ask does not refuse the
first run because the other was quicker: it holds the request until the other has been given up.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.run import problems
from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan


@dataclass(frozen=True, slots=True)
class Present:
    """A laptop's present run. ``launched``: too late to give it up for another one."""

    plan: Plan
    launched: bool


def present(coordinator: co.Coordination | None, participant: pa.Participation | None) -> Present | None:
    if coordinator is not None:
        return Present(coordinator.plan, not isinstance(coordinator.stage, co.Assembling))
    if participant is None:
        return None
    launched = isinstance(participant.stage, pa.TrainersRunning | pa.Trained | pa.Leaving | pa.Gone)
    return Present(participant.plan, launched)


def is_over(participant: pa.Participation | None) -> bool:
    """Whether nothing is left to do here except to wait for messages on their way."""
    return (
        participant is None
        or participant.local
        or (isinstance(participant.stage, pa.Leaving) and not participant.doing)
    )


def gives_way(present: Present, coming: Plan) -> bool:
    """Whether the starter of the present run gives it up for ``coming``, to take part in that one."""
    return _crosses(present, coming) and coming.run < present.plan.run


def why_busy(present: Present | None, coming: Plan) -> Problem:
    """Why a laptop refuses to take part in ``coming``. ``present`` None: it is planning a run, or closing."""
    if present is not None and _crosses(present, coming):
        starter = present.plan.member(present.plan.starter)
        return problems.crossed(starter.name)
    return problems.busy()


def lost_to(coming: Plan) -> Problem:
    """The verdict on the run that was given up for ``coming``."""
    name = coming.member(coming.starter).name
    return problems.declined(name, problems.crossed(name))


def _crosses(present: Present, coming: Plan) -> bool:
    """Each starter wants the other one's laptop for its own run."""
    mine, theirs = present.plan.starter, coming.starter
    among = {member.device for member in present.plan.members} & {member.device for member in coming.members}
    return not present.launched and mine != theirs and {mine, theirs} <= among


class HeldRequest:
    """A request for which the present run is being given up."""

    def __init__(self) -> None:
        self._held: tuple[DeviceId, ms.Prepare] | None = None

    def hold(self, device: DeviceId, prepare: ms.Prepare) -> tuple[DeviceId, ms.Prepare] | None:
        """Keep the request with the smallest id. Returns the one that is dropped."""
        if self._held is not None and self._held[1].plan.run < prepare.plan.run:
            return device, prepare
        left, self._held = self._held, (device, prepare)
        return left

    def take(self) -> tuple[DeviceId, ms.Prepare] | None:
        held, self._held = self._held, None
        return held

    def on_message(self, device: DeviceId, message: ms.Message) -> None:
        """Its starter may withdraw it meanwhile."""
        if self._held is not None and isinstance(message, ms.RunAbandoned):
            held_by, prepare = self._held
            if device == held_by and message.run == prepare.plan.run:
                self._held = None

    def on_link_down(self, device: DeviceId) -> None:
        if self._held is not None and self._held[0] == device:
            self._held = None
