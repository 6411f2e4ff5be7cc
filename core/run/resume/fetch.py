"""Finds a run's checkpoints here and on other laptops, and fetches one. On the core loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from msgspec.structs import asdict, replace

from core.history.read import read_taken_s
from core.home.private_file import write_atomically
from core.project import checkpoint_store
from core.project.checkpoint_store import Checkpoint
from core.project.receipt import Receipt
from core.run import written
from core.run.context import RunContext
from core.run.written import WrittenFiles
from core.runtime.background import Background
from core.runtime.regular_file import NotRegular
from core.runtime.removal import remove_tree
from core.vocabulary import run_folder, wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import (
    CheckpointAsked,
    CheckpointTold,
    CheckpointWanted,
    KeptCheckpoint,
)
from core.vocabulary.plan import Moment, Resumption
from core.vocabulary.plausible import LATEST_S, is_run_time, sound_moment, sound_use
from core.vocabulary.run_folder import BROUGHT, INCOMING

ASK_S = 15.0
"""An answer needs no hashing, so it comes at once."""
PIECE_S = 60.0
"""A transfer is given up after so long without a piece."""
SLOWEST_READ_BYTES_S = 5_000_000.0
"""A laptop reads its checkpoint before it sends it; a disk is no slower than this."""


class FoundCheckpoint(KeptCheckpoint, frozen=True, kw_only=True):
    """A checkpoint of ``run``; ``device`` None: it is on this disk."""

    run: RunId
    device: DeviceId | None

    @property
    def resumption(self) -> Resumption:
        return Resumption(run=self.run, checkpoint=self.files.digest, moment=self.moment, took_s=self.took_s)

    @property
    def order(self) -> tuple[tuple[int, ...], bool]:
        """The newest is the largest; among equals the one that is already here."""
        return self.moment.order, self.device is None


class CheckpointSearch:
    """Searches for one run's checkpoints; ``asking`` owns the questions. ``on_told`` handles messages of the
    laptop that a checkpoint is being fetched from.

    ``on_better``: another laptop has a newer one than all known before. ``on_piece``: how many bytes of the
    fetched one are here.
    """

    def __init__(
        self,
        context: RunContext,
        run: RunId,
        asking: Background,
        *,
        on_better: Callable[[FoundCheckpoint], None] = lambda found: None,
        on_piece: Callable[[FoundCheckpoint, int], None] = lambda found, received: None,
    ) -> None:
        self.run = run
        self._context = context
        self._asking = asking
        self._on_better = on_better
        self._on_piece = on_piece
        self._checkpoints = context.folder(run) / run_folder.CHECKPOINTS
        self._unheard: set[DeviceId] = set()
        self._corrected: set[DeviceId] = set()
        self._found: list[FoundCheckpoint] = []
        self._from: DeviceId | None = None
        self._coming: FoundCheckpoint | None = None
        self._patience: asyncio.Timeout | None = None
        """The time limit of the transfer under way."""
        self.written: WrittenFiles | None = None
        """The script's files that came with the checkpoint that was last fetched."""
        self.unwritten: TandemError | OSError | None = None
        """Why they did not come."""

    async def ask(
        self, devices: Iterable[DeviceId], limit_s: float = ASK_S, *, recorded: bool = False
    ) -> None:
        """Collect local checkpoints, and those of these devices. Later answers still count, within ``ASK_S``.
        ``recorded``: also what they recorded after the newest one here."""
        self._found += await self._context.files.do(self._own)
        self._unheard = set(devices)
        newest = self.best.moment if self.best is not None else Moment()
        question = CheckpointAsked(run=self.run, recorded=newest if recorded else None)
        asking = [
            self._asking.start("ask for a checkpoint", self._ask(each, question)) for each in self._unheard
        ]
        if asking:
            try:
                await asyncio.wait(asking, timeout=limit_s)
            except asyncio.CancelledError:  # The fetch was stopped, or Tandem closes and would wait for them.
                for each in asking:
                    each.cancel()
                raise

    async def _ask(self, device: DeviceId, question: CheckpointAsked) -> None:
        told = await self._context.links.ask(device, question, ASK_S)
        if isinstance(told, CheckpointTold):
            self._unheard.discard(device)
            self._add(device, told)

    @property
    def best(self) -> FoundCheckpoint | None:
        """The newest one that was not rejected; None where nobody has one."""
        return max(self._found, key=lambda found: found.order, default=None)

    @property
    def silent(self) -> frozenset[DeviceId]:
        """Devices that did not answer."""
        return frozenset(self._unheard)

    def leave_aside(self, found: FoundCheckpoint) -> None:
        self._found.remove(found)

    async def fetch(self, found: FoundCheckpoint) -> Checkpoint:
        """Fetch a checkpoint. Returns the one here, with exactly the announced bytes. Raises
        ``TandemError``."""
        self.written = self.unwritten = None
        if found.device is not None:
            return await self._receive(found, found.device)
        here = await self._context.files.do(checkpoint_store.find, self._checkpoints, found.files.digest)
        if here is None:
            raise TandemError(
                code="checkpoint-damaged",
                what="Its files here are damaged.",
                fix="Start the training again, or resume it on a laptop that has another checkpoint.",
            )
        # An earlier attempt may have fetched it from a laptop whose script had written more.
        run = self._context.folder(self.run)
        self.written = await self._context.files.do(written.find_brought, run, found.files.digest)
        return here

    def _own(self) -> list[FoundCheckpoint]:
        """On the files' thread."""
        found, took_s = list[FoundCheckpoint](), read_taken_s(self._context.folder(self.run))
        for checkpoint in checkpoint_store.complete_by_size(self._checkpoints):
            with contextlib.suppress(OSError, NotRegular):
                files, head = checkpoint_store.listing(checkpoint), checkpoint.head
                kept = KeptCheckpoint(moment=head.moment, shares=head.shares, files=files, took_s=took_s)
                found.append(self._found_at(None, kept))
        return found

    def _found_at(self, device: DeviceId | None, kept: KeptCheckpoint) -> FoundCheckpoint:
        return FoundCheckpoint(run=self.run, device=device, **asdict(kept))

    def on_told(self, device: DeviceId, told: CheckpointTold) -> None:
        if device == self._from and device not in self._corrected and not self._comes(told):
            # Its first offer proved damaged when it was to be sent. Accept one correction only, or it might
            # never end.
            self._corrected.add(device)
            self._add(device, told)
            if self._patience is not None and not self._patience.expired():
                self._patience.reschedule(0.0)

    def _comes(self, told: CheckpointTold) -> bool:
        """Whether it is the one being fetched: a late answer to an earlier question."""
        coming, kept = self._coming, told.kept
        return coming is not None and kept is not None and kept.files.digest == coming.files.digest

    def _add(self, device: DeviceId, told: CheckpointTold) -> None:
        kept = told.kept
        if kept is None or not sound_moment(kept.moment):
            return
        try:
            checkpoint_store.check_listing(kept.files)
            if kept.written is not None:
                written.check(kept.written)
        except TandemError:
            return  # as good as none
        took_s = kept.took_s if is_run_time(kept.took_s) else 0.0
        turns = tuple(turn for turn in kept.membership if 0 <= turn.at_s <= LATEST_S)
        used = tuple(filter(sound_use, kept.used))
        found = self._found_at(device, replace(kept, took_s=took_s, membership=turns, used=used))
        self._found.append(found)
        if found is self.best:
            self._on_better(found)

    async def _receive(self, found: FoundCheckpoint, device: DeviceId) -> Checkpoint:
        self._from, self._coming = device, found
        try:
            receipt = await self._context.files.do(self._begin, found)
            wanted = CheckpointWanted(run=self.run, checkpoint=found.files.digest)
            if not self._context.links.send(device, wanted):
                raise _lost()
            self._on_piece(found, 0)
            await self._transfer(device, receipt, lambda: self._on_piece(found, receipt.received_bytes))
            here = await self._context.files.do(_finish, receipt, found)
            await self._context.files.do(self._keep_recorded, found)
            if found.written is not None:
                try:
                    self.written = await self._bring(device, found.files.digest, found.written)
                except (TandemError, OSError) as error:  # The checkpoint counts without it.
                    self.unwritten = error
            return here
        finally:
            self._from = self._coming = None
            self._context.links.send(device, CheckpointWanted(run=self.run, checkpoint=None))

    async def _bring(self, device: DeviceId, checkpoint: ProjectId, files: Manifest) -> WrittenFiles:
        """Fetch what the script wrote. Raises ``TandemError``, ``OSError``."""
        receipt = await self._context.files.do(self._begin_written, files)
        await self._transfer(device, receipt)
        await self._context.files.do(receipt.finish)
        run = self._context.folder(self.run)
        return await self._context.files.do(written.keep_brought, run, checkpoint, files)

    async def _transfer(
        self, device: DeviceId, receipt: Receipt, on_piece: Callable[[], None] = lambda: None
    ) -> None:
        """Raises ``TandemError``, also if nothing comes for too long: a device that is away may come back."""
        first_piece_s = self._context.limits.first_piece_s
        first_piece_s += receipt.manifest.total_bytes / SLOWEST_READ_BYTES_S
        try:
            async with asyncio.timeout(first_piece_s) as patience:
                self._patience = patience

                def came() -> None:
                    if not patience.expired():
                        patience.reschedule(asyncio.get_running_loop().time() + PIECE_S)
                    on_piece()

                await self._context.transfers.fetch(device, receipt, came)
        except TimeoutError:
            raise _lost() from None
        finally:
            self._patience = None

    def _begin(self, found: FoundCheckpoint) -> Receipt:
        """On the files' thread. Bytes of the same checkpoint that came before need not come again.

        Kept apart from the checkpoints, where a script may have left a link in its place.
        """
        folder = self._context.folder(self.run)
        incoming = folder / INCOMING
        parts = incoming / found.files.digest
        if not parts.is_dir():
            checkpoint_store.clear(incoming)
        return Receipt(found.files, parts, checkpoint_store.next_place(self._checkpoints))

    def _begin_written(self, files: Manifest) -> Receipt:
        """On the files' thread."""
        folder = self._context.folder(self.run)
        remove_tree(folder / BROUGHT)
        return Receipt(files, folder / INCOMING / files.digest, written.brought(folder))

    def _keep_recorded(self, found: FoundCheckpoint) -> None:
        """On the files' thread. The checkpoint counts without it."""
        recorded = (*found.recorded, *found.membership, *found.used)
        lines = b"".join(wire.to_json(each) + b"\n" for each in recorded)
        with contextlib.suppress(OSError):
            write_atomically(self._context.folder(self.run) / run_folder.LATER, lines)


def _finish(receipt: Receipt, found: FoundCheckpoint) -> Checkpoint:
    """On the files' thread. Its manifest must agree with what the laptop announced."""
    folder = receipt.finish()
    here = checkpoint_store.at(folder)
    if (
        here is None
        or checkpoint_store.listing(here).digest != found.files.digest
        or (here.head.moment, here.head.shares) != (found.moment, found.shares)
    ):
        checkpoint_store.clear(folder)
        raise TandemError(
            code="checkpoint-refused",
            what="It is not the checkpoint that the other laptop announced.",
            fix="Update Tandem on both laptops, or start the training again.",
        )
    return here


def _lost() -> TandemError:
    return TandemError(
        code="checkpoint-lost",
        what="The files could not be fetched from the laptop that has them.",
        fix="Make sure that both laptops are connected and have free disk space, then try again.",
    )
