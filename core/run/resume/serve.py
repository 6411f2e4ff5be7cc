"""Tells paired laptops which checkpoint of a common run lies here, and sends it. On the core loop.

Questions are answered without hashing: gigabytes take longer than anybody waits for an answer. What is sent
is hashed first, and again by the laptop that receives it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from core.history.read import read_plan
from core.project import checkpoint_store
from core.project.checkpoint_store import Checkpoint
from core.project.files import NotRegular
from core.run.context import RunContext
from core.run.transfer import send_pieces
from core.vocabulary import run_folder
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import CheckpointAsked, CheckpointTold, CheckpointWanted
from core.vocabulary.run_folder import is_run_id

_log = logging.getLogger(__name__)


class CheckpointServer:
    """One answer at a time for each device; a newer question ends the sending that is under way."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._asked: dict[DeviceId, CheckpointAsked | CheckpointWanted] = {}
        self._busy: set[DeviceId] = set()

    def on_message(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> None:
        self._asked[device] = message
        if device not in self._busy:
            self._busy.add(device)
            self._context.background.start("send a checkpoint", self._answer_all(device))

    async def _answer_all(self, device: DeviceId) -> None:
        try:
            while (message := self._asked.pop(device, None)) is not None:
                try:
                    await self._answer(device, message)
                except (TandemError, OSError, NotRegular) as error:
                    _log.warning("a checkpoint of %s could not be sent: %s", message.run, error)
                    if isinstance(message, CheckpointWanted):  # else it would be waited for
                        self._context.links.send(device, CheckpointTold(run=message.run))
        finally:
            self._busy.discard(device)

    async def _answer(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> None:
        if isinstance(message, CheckpointWanted) and message.checkpoint is None:
            return
        found = await self._context.files.do(self._find, device, message)
        if found is None:
            self._context.links.send(device, CheckpointTold(run=message.run))
            return
        checkpoint, files = found
        if isinstance(message, CheckpointAsked) or files.digest != message.checkpoint:
            head = checkpoint.head
            told = CheckpointTold(run=message.run, moment=head.moment, shares=head.shares, files=files)
            self._context.links.send(device, told)
            return
        await send_pieces(
            self._context,
            device,
            message.run,
            files.digest,
            Path(checkpoint.folder),
            files,
            tuple(range(len(files.files))),
            lambda: device not in self._asked,
        )

    def _find(
        self, device: DeviceId, message: CheckpointAsked | CheckpointWanted
    ) -> tuple[Checkpoint, Manifest] | None:
        """On the files' thread. Only who took part in a run, or started it, learns of its checkpoints."""
        if not is_run_id(message.run):
            return None
        folder = self._context.folder(message.run)
        plan = read_plan(folder)
        if plan is None or device not in {plan.starter, *(member.device for member in plan.members)}:
            return None
        place = folder / run_folder.CHECKPOINTS
        if isinstance(message, CheckpointAsked) or message.checkpoint is None:
            found = checkpoint_store.look(place)
        else:
            found = checkpoint_store.find(place, message.checkpoint) or checkpoint_store.newest(place)
        return None if found is None else (found, checkpoint_store.listing(found))
