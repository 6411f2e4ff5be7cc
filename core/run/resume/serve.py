"""Tells paired laptops which checkpoint of a common run is here, and sends it. On the core loop.

Questions are answered without hashing: gigabytes take longer than anybody waits for an answer. An offered
checkpoint is hashed first, and again by the laptop that fetches it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from core.history.read import membership_for_peer, read_plan, read_taken_s, reports_for_peer, uses_for_peer
from core.project import checkpoint_store
from core.project.send import ManifestReader
from core.run import written
from core.run.context import RunContext
from core.run.written import WrittenFiles
from core.runtime.regular_file import NotRegular
from core.transfer.offer import OfferedFiles
from core.vocabulary import run_folder
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import (
    CheckpointAsked,
    CheckpointTold,
    CheckpointWanted,
    KeptCheckpoint,
)
from core.vocabulary.run_folder import is_run_id

_log = logging.getLogger(__name__)
_MOST_SUCCESSORS = 1000
"""Limit for one run, in case folders were tampered with."""


class _Found(NamedTuple):
    kept: KeptCheckpoint
    place: Path
    """The checkpoint's folder."""
    written: WrittenFiles | None


class CheckpointServer:
    """One answer at a time for each device; a newer question ends the current offer. ``settle``: waits until
    everything recorded so far is on the disk."""

    def __init__(self, context: RunContext, settle: Callable[[], Awaitable[None]]) -> None:
        self._context = context
        self._settle = settle
        self._asked: dict[DeviceId, CheckpointAsked | CheckpointWanted] = {}
        self._busy: set[DeviceId] = set()
        self._offers: dict[DeviceId, Callable[[], object]] = {}
        """Functions that withdraw the offers."""

    def on_message(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> None:
        self._asked[device] = message
        self._offers.pop(device, lambda: None)()
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
                    if isinstance(message, CheckpointWanted):  # its sender waits for an answer
                        self._context.links.send(device, CheckpointTold(run=message.run))
        finally:
            self._busy.discard(device)

    async def _answer(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> None:
        if isinstance(message, CheckpointWanted) and message.checkpoint is None:
            return
        await self._settle()
        found = await self._context.files.do(self._find, device, message)
        if found is None:
            self._context.links.send(device, CheckpointTold(run=message.run))
            return
        kept, place, wrote = found
        if isinstance(message, CheckpointAsked) or kept.files.digest != message.checkpoint:
            self._context.links.send(device, CheckpointTold(run=message.run, kept=kept))
            return
        if device not in self._asked:
            offer = self._context.transfers.offer
            readers = [ManifestReader(place.parent, kept.files, inside=place.name)]
            if wrote is not None:
                readers.append(ManifestReader(wrote.folder, wrote.files))
            offers = [offer(device, OfferedFiles(reader)) for reader in readers]
            self._offers[device] = lambda: [withdraw() for withdraw in offers]

    def _find(self, device: DeviceId, message: CheckpointAsked | CheckpointWanted) -> _Found | None:
        """On the files' thread. Only members and the starter of a run learn of its checkpoints."""
        if not is_run_id(message.run):
            return None
        folder = self._context.folder(message.run)
        plan = read_plan(folder)
        if plan is None or device not in {plan.starter, *(member.device for member in plan.members)}:
            return None
        newest = self._context.folder(newest_of(self._context.runs, message.run))
        place = newest / run_folder.CHECKPOINTS
        if isinstance(message, CheckpointAsked) or message.checkpoint is None:
            found = checkpoint_store.newest_by_size(place)
        else:
            found = checkpoint_store.find(place, message.checkpoint) or checkpoint_store.newest(place)
        if found is None:
            return None
        after = message.recorded if isinstance(message, CheckpointAsked) else None
        wrote = written.find(newest)
        kept = KeptCheckpoint(
            moment=found.head.moment,
            shares=found.head.shares,
            files=checkpoint_store.listing(found),
            written=None if wrote is None else wrote.files,
            took_s=read_taken_s(newest),
            recorded=() if after is None else reports_for_peer(newest, after),
            membership=() if after is None else membership_for_peer(newest),
            used=() if after is None else uses_for_peer(newest, after),
        )
        return _Found(kept, Path(found.folder), wrote)


def note_successor(runs: Path, run: RunId, successor: RunId) -> None:
    """``successor`` goes on with a run in place of its lost starter: its checkpoints are that run's newest.
    Blocks."""
    folder = runs / run
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / run_folder.SUCCESSOR).write_text(successor)


def newest_of(runs: Path, run: RunId) -> RunId:
    """The run whose checkpoints here are the newest of this one. Blocks."""
    for _ in range(_MOST_SUCCESSORS):
        try:
            successor = (runs / run / run_folder.SUCCESSOR).read_text()
        except (OSError, ValueError):
            break
        if not is_run_id(successor) or not (runs / successor).is_dir():
            break
        run = RunId(successor)
    return run
