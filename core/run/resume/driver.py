"""Checkpoints between laptops: lent to those who ask, brought here when a run is gone on with. Core loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.history.read import read_project
from core.run.context import Workplace
from core.run.resume import plan
from core.run.resume.fetch import Found, Gathering
from core.run.resume.serve import Lending
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import TandemError
from core.vocabulary.events import CheckpointCame, CheckpointFound, FetchEnded
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Plan

LOOK_S = 2.0
"""Who shows a run does not wait for longer; who answers later is told of later."""


@dataclass(frozen=True, slots=True)
class Brought:
    """``remarks``: why it may not be the newest one, for the user."""

    found: Found
    folder: Path
    remarks: tuple[str, ...]


class Exchange:
    """One for a node's life."""

    def __init__(
        self, place: Workplace, emit: Callable[[CheckpointFound | CheckpointCame | FetchEnded], None]
    ) -> None:
        self._place = place
        self._emit = emit
        self._lending = Lending(place)
        self._gathering: Gathering | None = None
        self._looking: Gathering | None = None
        self._one_look = asyncio.Lock()
        self._work: asyncio.Task[Brought] | None = None

    def hear(self, device: DeviceId, message: Message) -> bool:
        """False: the message is not about this."""
        match message:
            case ms.CheckpointAsked() | ms.CheckpointWanted():
                self._lending.hear(device, message)
                return True
            case ms.CheckpointTold(run=run) | ms.Chunk(run=run):
                heard = [each for each in self._asking if each.run == run]
                for each in heard:
                    each.hear(device, message)
                return bool(heard)
        return False

    def project_of(self, old: Plan) -> Manifest | None:
        """The files that a run began with, where that is kept. Blocks."""
        return read_project(self._place.folder(old.run)) or self._place.store.manifest(old.project)

    def link_down(self, device: DeviceId) -> None:
        for each in self._asking:
            each.link_down(device)

    async def look(self, old: Plan) -> None:
        """Emits ``CheckpointFound``. Waits ``LOOK_S``; who takes longer to answer is heard all the same."""
        async with self._one_look:  # Who lends answers the newest question alone.
            if self._gathering is not None:
                return  # And a question ends the sending that is under way.
            self._looking = Gathering(self._place, old.run, on_better=self._tell_found)
            await self._looking.ask(self._others(old), LOOK_S)

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
        names = self._others(old)
        gathering = self._gathering = Gathering(self._place, old.run, on_piece=self._tell_piece)
        try:
            await gathering.ask(names)
            absent = tuple(name for device, name in names.items() if device in gathering.silent)
            newest: TandemError | None = None
            remarks = [plan.not_asked(absent)] if absent else []
            while (found := gathering.best) is not None:
                where = "this laptop" if found.device is None else names[found.device]
                try:
                    folder = await gathering.fetch(found)
                except TandemError as error:
                    newest = newest or error
                    remarks.append(plan.left_aside(found, where, error))
                    gathering.leave_aside(found)
                    continue
                finally:
                    if found.device is not None:
                        self._emit(FetchEnded(run=old.run))
                if remarks:
                    remarks.append(plan.taken(found, where))
                return Brought(found, folder, tuple(remarks))
            raise newest or plan.none_found(old, absent)
        finally:
            self._gathering = None

    @property
    def _asking(self) -> list[Gathering]:
        return [each for each in (self._looking, self._gathering) if each is not None]

    def _others(self, old: Plan) -> dict[DeviceId, str]:
        """Who took part, but for this laptop, by name."""
        return {member.device: member.name for member in old.members if member.device != self._place.me}

    def _tell_found(self, found: Found) -> None:
        assert found.device is not None  # Ours are no news.
        self._emit(CheckpointFound(run=found.run, device=found.device, moment=found.moment))

    def _tell_piece(self, found: Found, received: int) -> None:
        assert found.device is not None
        total = found.files.total_bytes
        self._emit(CheckpointCame(run=found.run, device=found.device, done=received, total=total))
