"""Checkpoints between laptops: lent to those who ask, brought here when a run is gone on with. Core loop."""

from __future__ import annotations

from pathlib import Path

from core.cluster.plan import Plan
from core.ids import DeviceId
from core.link import messages as ms
from core.link.messages import Message
from core.run import resuming
from core.run.gathering import Found, Gathering
from core.run.lending import Lending
from core.run.workplace import Workplace


class Exchange:
    """One for a node's life."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._lending = Lending(place)
        self._gathering: Gathering | None = None

    def hear(self, device: DeviceId, message: Message) -> bool:
        """False: the message is not about this."""
        match message:
            case ms.CheckpointAsked() | ms.CheckpointWanted():
                self._lending.hear(device, message)
                return True
            case ms.CheckpointTold(run=run) | ms.Chunk(run=run):
                if self._gathering is not None and self._gathering.run == run:
                    self._gathering.hear(device, message)
                    return True
        return False

    async def bring(self, old: Plan) -> tuple[Found, Path]:
        """The newest checkpoint of a run, and its folder here. Raises ``TandemError``."""
        names = {member.device: member.name for member in old.members if member.device != self._place.me}
        gathering = self._gathering = Gathering(self._place, old.run)
        try:
            found = await gathering.find(names)
            if found is None:
                raise resuming.none_found(old, tuple(names[device] for device in gathering.silent))
            return found, await gathering.fetch(found)
        finally:
            self._gathering = None
