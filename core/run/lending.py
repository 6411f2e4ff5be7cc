"""Tells paired laptops which checkpoint of a common run lies here, and sends it. On the core loop."""

from __future__ import annotations

import logging
from pathlib import Path

from core.errors import TandemError
from core.ids import DeviceId, RunId
from core.link.messages import CheckpointAsked, CheckpointTold, CheckpointWanted
from core.project.manifest import Manifest
from core.run import checkpoints
from core.run.checkpoints import Checkpoint
from core.run.reading import read_plan
from core.run.request import is_run_id
from core.run.workplace import Workplace, send_pieces

_log = logging.getLogger(__name__)


class Lending:
    """One answer at a time for each device; what it asks meanwhile is left unanswered."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._busy: set[DeviceId] = set()

    def hear(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> None:
        if device not in self._busy:
            self._busy.add(device)
            self._place.background.start("lend a checkpoint", self._answer(device, message))

    async def _answer(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> None:
        try:
            found = await self._place.files.do(self._find, device, message)
            if isinstance(message, CheckpointAsked):
                told = CheckpointTold(run=message.run)
                if found is not None:
                    checkpoint, files = found
                    told = CheckpointTold(
                        run=message.run,
                        moment=checkpoint.head.moment,
                        shares=checkpoint.head.shares,
                        files=files,
                    )
                self._place.links.send(device, told)
            elif found is not None:
                checkpoint, files = found
                await send_pieces(
                    self._place,
                    device,
                    message.run,
                    files.digest,
                    Path(checkpoint.folder),
                    files,
                    tuple(range(len(files.files))),
                    lambda: True,
                )
        except (TandemError, OSError) as error:
            _log.warning("a checkpoint of %s could not be lent: %s", message.run, error)
        finally:
            self._busy.discard(device)

    def _find(
        self, device: DeviceId, message: CheckpointAsked | CheckpointWanted
    ) -> tuple[Checkpoint, Manifest] | None:
        """On the files' thread. Only who took part in a run, or started it, learns of its checkpoints."""
        if not is_run_id(message.run):
            return None
        folder = self._place.folder(message.run)
        plan = read_plan(folder)
        if plan is None or device not in {plan.starter, *(member.device for member in plan.members)}:
            return None
        kept = folder / checkpoints.FOLDER
        if isinstance(message, CheckpointWanted):
            found = checkpoints.find(kept, message.checkpoint)
        else:
            found = checkpoints.newest(kept)
        return None if found is None else (found, checkpoints.listing(found))


def own(place: Workplace, run: RunId) -> tuple[Checkpoint, Manifest] | None:
    """The newest whole one of a run on this laptop. Blocks."""
    found = checkpoints.newest(place.folder(run) / checkpoints.FOLDER)
    return None if found is None else (found, checkpoints.listing(found))
