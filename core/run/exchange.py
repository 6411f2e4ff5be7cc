"""Checkpoints between laptops: lent to those who ask, brought here when a run is gone on with. Core loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from core.cluster.plan import Plan
from core.errors import TandemError
from core.ids import DeviceId
from core.link import messages as ms
from core.link.messages import Message
from core.project.manifest import Manifest
from core.run import resuming
from core.run.gathering import Found, Gathering
from core.run.lending import Lending
from core.run.reading import read_project
from core.run.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Brought:
    """``remarks``: why it may not be the newest one, for the user."""

    found: Found
    folder: Path
    remarks: tuple[str, ...]


class Exchange:
    """One for a node's life."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._lending = Lending(place)
        self._gathering: Gathering | None = None
        self._work: asyncio.Task[Brought] | None = None

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

    def project_of(self, old: Plan) -> Manifest | None:
        """The files that a run began with, where that is kept. Blocks."""
        return read_project(self._place.folder(old.run)) or self._place.store.manifest(old.project)

    def link_down(self, device: DeviceId) -> None:
        if self._gathering is not None:
            self._gathering.link_down(device)

    def stop(self) -> None:
        """Ends ``bring``."""
        if self._work is not None:
            self._work.cancel()

    async def bring(self, old: Plan) -> Brought | None:
        """The newest checkpoint of a run that can be had; None: stopped. Raises ``TandemError``."""
        work = self._work = asyncio.ensure_future(self._bring(old))
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()
            self._work = None
        return None if work.cancelled() else work.result()

    async def _bring(self, old: Plan) -> Brought:
        names = {member.device: member.name for member in old.members if member.device != self._place.me}
        gathering = self._gathering = Gathering(self._place, old.run)
        try:
            await gathering.ask(names)
            absent = tuple(name for device, name in names.items() if device in gathering.silent)
            newest: TandemError | None = None
            remarks = [resuming.not_asked(absent)] if absent else []
            while (found := gathering.best) is not None:
                where = "this laptop" if found.device is None else names[found.device]
                try:
                    folder = await gathering.fetch(found)
                except TandemError as error:
                    newest = newest or error
                    remarks.append(resuming.left_aside(found, where, error))
                    gathering.leave_aside(found)
                    continue
                if remarks:
                    remarks.append(resuming.taken(found, where))
                return Brought(found, folder, tuple(remarks))
            raise newest or resuming.none_found(old, absent)
        finally:
            self._gathering = None
