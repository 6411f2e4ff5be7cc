"""Exchanges checkpoints between laptops: sends them on request, fetches one to resume a run. On the core
loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from core.history.read import read_project
from core.project.checkpoint_store import Checkpoint
from core.run.context import RunContext
from core.run.resume import plan
from core.run.resume.fetch import CheckpointSearch, FoundCheckpoint
from core.run.resume.serve import CheckpointServer
from core.run.written import WrittenFiles
from core.runtime.background import Background
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import TandemError
from core.vocabulary.events import CheckpointCame, CheckpointFound, FetchEnded
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Plan


@dataclass(frozen=True, slots=True)
class FetchedCheckpoint:
    """``remarks``: why it may not be the newest one, for the user. ``written``: what the script had written
    on the other laptop that it came from."""

    found: FoundCheckpoint
    here: Checkpoint
    remarks: tuple[str, ...]
    written: WrittenFiles | None = None

    @property
    def folder(self) -> Path:
        return Path(self.here.folder)


class CheckpointDriver:
    """One per node. ``settle``: as in ``CheckpointServer``."""

    def __init__(self, context: RunContext, settle: Callable[[], Awaitable[None]]) -> None:
        self._context = context
        self._server = CheckpointServer(context, settle)
        self._asking = Background()
        """Questions that may outlive their asker: closing the node does not wait for their answers."""
        self._fetching: CheckpointSearch | None = None
        self._one_search = asyncio.Lock()
        self._work: asyncio.Task[FetchedCheckpoint] | None = None

    def on_message(self, device: DeviceId, message: Message) -> bool:
        """False: the message is about something else."""
        match message:
            case ms.CheckpointAsked() | ms.CheckpointWanted():
                self._server.on_message(device, message)
                return True
            case ms.CheckpointTold(run=run):
                if self._fetching is not None and self._fetching.run == run:
                    self._fetching.on_told(device, message)
                    return True
        return False

    def project_of(self, old: Plan) -> Manifest | None:
        """The files that a run began with, if recorded. Blocks."""
        return read_project(self._context.folder(old.run)) or self._context.store.manifest(old.project)

    async def search(self, old: Plan) -> None:
        """Search the other laptops. Emits ``CheckpointFound``. Waits no longer than the limit; later answers
        still count."""
        async with self._one_search:  # A laptop answers only the newest question.
            if self._fetching is not None:
                return  # A question would end the transfer under way.
            search = CheckpointSearch(self._context, old.run, self._asking, on_better=self._tell_found)
            await search.ask(self._others(old), self._context.limits.look_s)

    async def close(self) -> None:
        await self._asking.cancel()

    def stop(self) -> None:
        """Ends ``fetch``."""
        if self._work is not None:
            self._work.cancel()

    async def fetch(self, old: Plan, *, own: bool = False) -> FetchedCheckpoint | None:
        """The newest available checkpoint of a run; None: stopped. Raises ``TandemError``.

        ``own``: none is newer than the one here, so others are asked only if it is missing or damaged.
        """
        work = self._work = asyncio.ensure_future(self._fetch_newest(old, own))
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()
            self._work = None
        return None if work.cancelled() else work.result()

    async def _fetch_newest(self, old: Plan, own: bool) -> FetchedCheckpoint:
        names = self._others(old)
        search = self._fetching = CheckpointSearch(
            self._context, old.run, self._asking, on_piece=self._tell_piece
        )
        try:
            if own and (here := await self._own(search)) is not None:
                return here
            await search.ask(names, recorded=True)
            absent = tuple(name for device, name in names.items() if device in search.silent)
            newest: TandemError | None = None
            remarks = [plan.not_asked(absent)] if absent else []
            while (found := search.best) is not None:
                where = "this laptop" if found.device is None else names[found.device]
                try:
                    checkpoint = await search.fetch(found)
                except TandemError as error:
                    newest = newest or error
                    remarks.append(plan.left_aside(found, where, error))
                    search.leave_aside(found)
                    continue
                finally:
                    if found.device is not None:
                        self._context.emit(FetchEnded(run=old.run))
                if remarks:
                    remarks.append(plan.taken(found, where))
                if search.unwritten is not None:
                    remarks.append(plan.unwritten(where, search.unwritten))
                return FetchedCheckpoint(found, checkpoint, tuple(remarks), search.written)
            raise newest or plan.none_found(old, absent)
        finally:
            self._fetching = None

    async def _own(self, search: CheckpointSearch) -> FetchedCheckpoint | None:
        await search.ask(())
        while (found := search.best) is not None:
            with contextlib.suppress(TandemError):
                return FetchedCheckpoint(found, await search.fetch(found), (), search.written)
            search.leave_aside(found)
        return None

    def _others(self, old: Plan) -> dict[DeviceId, str]:
        """The other members, by name."""
        return {member.device: member.name for member in old.members if member.device != self._context.me}

    def _tell_found(self, found: FoundCheckpoint) -> None:
        assert found.device is not None  # Local checkpoints are not announced.
        self._context.emit(CheckpointFound(run=found.run, device=found.device, moment=found.moment))

    def _tell_piece(self, found: FoundCheckpoint, received: int) -> None:
        assert found.device is not None
        total = found.files.total_bytes
        self._context.emit(CheckpointCame(run=found.run, device=found.device, done=received, total=total))
