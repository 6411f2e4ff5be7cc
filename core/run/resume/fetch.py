"""Finds out which checkpoints of a run lie here and on other laptops, and fetches one. On the core loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.project import checkpoint_store
from core.project.files import NotRegular
from core.project.receipt import Receipt
from core.run.context import RunContext
from core.run.transfer import IncomingFiles
from core.vocabulary import run_folder
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import CheckpointAsked, CheckpointTold, CheckpointWanted, Chunk
from core.vocabulary.plan import Moment, Resumption
from core.vocabulary.plausible import sound_moment
from core.vocabulary.run_folder import INCOMING

ASK_S = 15.0
"""An answer needs no hashing, so it comes at once."""
PIECE_S = 60.0
"""Without a piece for so long, a transfer is given up."""


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint of ``run``; ``device`` None: it lies here."""

    run: RunId
    moment: Moment
    shares: tuple[int, ...]
    files: Manifest
    device: DeviceId | None

    @property
    def resumption(self) -> Resumption:
        return Resumption(run=self.run, checkpoint=self.files.digest, moment=self.moment)

    @property
    def order(self) -> tuple[tuple[int, ...], bool]:
        """The newest is the largest; of equal ones that which need not travel."""
        return self.moment.order, self.device is None


class CheckpointSearch:
    """For one run. ``on_message`` takes what others answer.

    ``on_better``: another laptop told of one that is newer than all that were known before. ``on_piece``: so
    many bytes of the one that is fetched are here.
    """

    def __init__(
        self,
        context: RunContext,
        run: RunId,
        *,
        on_better: Callable[[FoundCheckpoint], None] = lambda found: None,
        on_piece: Callable[[FoundCheckpoint, int], None] = lambda found, received: None,
    ) -> None:
        self.run = run
        self._context = context
        self._on_better = on_better
        self._on_piece = on_piece
        self._checkpoints = context.folder(run) / run_folder.CHECKPOINTS
        self._asked: set[DeviceId] = set()
        self._unheard: set[DeviceId] = set()
        self._corrected: set[DeviceId] = set()
        self._found: list[FoundCheckpoint] = []
        self._answered = asyncio.Event()
        self._from: DeviceId | None = None
        self._incoming: IncomingFiles | None = None
        self._heard = asyncio.Event()
        self._done: asyncio.Future[None] | None = None

    async def ask(self, devices: Iterable[DeviceId], limit_s: float = ASK_S) -> None:
        """What is here, and what these devices have. Later answers still count."""
        self._found += await self._context.files.do(self._own)
        self._unheard = set(devices)
        for device in tuple(self._unheard):
            if self._context.links.send(device, CheckpointAsked(run=self.run)):
                self._asked.add(device)
        try:
            async with asyncio.timeout(limit_s if self._asked else 0.0):
                await self._answered.wait()
        except TimeoutError:
            pass

    @property
    def best(self) -> FoundCheckpoint | None:
        """The newest one that was not left aside; None where nobody has one."""
        return max(self._found, key=lambda found: found.order, default=None)

    @property
    def silent(self) -> frozenset[DeviceId]:
        """Those who did not answer."""
        return frozenset(self._unheard)

    def leave_aside(self, found: FoundCheckpoint) -> None:
        self._found.remove(found)

    async def fetch(self, found: FoundCheckpoint) -> Path:
        """Its folder here, with exactly the bytes that were announced. Raises ``TandemError``."""
        if found.device is not None:
            return await self._receive(found, found.device)
        here = await self._context.files.do(checkpoint_store.find, self._checkpoints, found.files.digest)
        if here is None:
            raise TandemError(
                code="checkpoint-damaged",
                what="Its files here are damaged.",
                fix="Start the training anew, or resume it on a laptop that has another checkpoint.",
            )
        return Path(here.folder)

    def on_message(self, device: DeviceId, message: CheckpointTold | Chunk) -> None:
        if isinstance(message, CheckpointTold):
            self._on_told(device, message)
        elif device == self._from and self._incoming and message.project == self._incoming.project:
            self._heard.set()
            if not self._incoming.take(message):
                self._over(_lost())

    def on_link_down(self, device: DeviceId) -> None:
        self._asked.discard(device)
        if not self._asked:
            self._answered.set()
        if device == self._from:
            self._over(_lost())

    def _own(self) -> list[FoundCheckpoint]:
        """On the files' thread."""
        found = []
        for checkpoint in checkpoint_store.looks(self._checkpoints):
            try:
                files = checkpoint_store.listing(checkpoint)
            except (OSError, NotRegular):
                continue
            head = checkpoint.head
            found.append(FoundCheckpoint(self.run, head.moment, head.shares, files, device=None))
        return found

    def _on_told(self, device: DeviceId, told: CheckpointTold) -> None:
        if device in self._asked:
            self._asked.discard(device)
            self._unheard.discard(device)
            self._add(device, told)
            if not self._asked:
                self._answered.set()
        elif device == self._from and device not in self._corrected and not self._comes(told):
            # What it offered first proved damaged when it was to be sent. Once only, or it might never end.
            self._corrected.add(device)
            self._add(device, told)
            self._over(_lost())

    def _comes(self, told: CheckpointTold) -> bool:
        """It is the very one that is being fetched: a late answer to an earlier look."""
        return (
            self._incoming is not None
            and told.files is not None
            and told.files.digest == self._incoming.project
        )

    def _add(self, device: DeviceId, told: CheckpointTold) -> None:
        if told.moment is not None and told.files is not None and sound_moment(told.moment):
            try:
                checkpoint_store.check_listing(told.files)
            except TandemError:
                return  # as good as none
            found = FoundCheckpoint(self.run, told.moment, told.shares, told.files, device)
            self._found.append(found)
            if found is self.best:
                self._on_better(found)

    async def _receive(self, found: FoundCheckpoint, device: DeviceId) -> Path:
        self._from = device
        done = self._done = asyncio.get_running_loop().create_future()
        incoming = self._incoming = IncomingFiles(
            self._context,
            found.files.digest,
            found.files.total_bytes,
            on_piece=lambda received: self._on_piece(found, received),
            on_complete=lambda: self._over(None),
            on_trouble=self._over,
        )
        here = None
        try:
            incoming.receipt = await self._context.files.do(self._begin, found)
            wanted = CheckpointWanted(run=self.run, checkpoint=found.files.digest)
            if not self._context.links.send(device, wanted):
                raise _lost()
            self._on_piece(found, 0)
            await self._wait(done)
            here = await self._context.files.do(_finish, incoming.receipt, found)
            return here
        finally:
            incoming.end()
            self._from = self._incoming = None
            if not done.cancel():
                done.exception()  # taken note of: what ended this is raised already
            if here is None:
                self._context.links.send(device, CheckpointWanted(run=self.run, checkpoint=None))

    def _begin(self, found: FoundCheckpoint) -> Receipt:
        """On the files' thread. All files are sent: what came of an earlier try would be in their way."""
        parts = self._checkpoints / INCOMING
        checkpoint_store.clear(parts)
        return Receipt(found.files, parts, checkpoint_store.next_place(self._checkpoints))

    async def _wait(self, done: asyncio.Future[None]) -> None:
        limit_s = self._context.limits.first_piece_s
        while not done.done():
            self._heard.clear()
            heard = asyncio.ensure_future(self._heard.wait())
            either: set[asyncio.Future[Any]] = {heard, done}
            try:
                await asyncio.wait(either, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                heard.cancel()
            if not self._heard.is_set() and not done.done():
                raise _lost()
            limit_s = PIECE_S
        done.result()

    def _over(self, error: Exception | None) -> None:
        if self._done is None or self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)


def _finish(receipt: Receipt, found: FoundCheckpoint) -> Path:
    """On the files' thread. Its manifest must agree with what the laptop said of it."""
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
            what="It is not what the laptop that has it told of it.",
            fix="Update Tandem on both laptops, or start the training anew.",
        )
    return folder


def _lost() -> TandemError:
    return TandemError(
        code="checkpoint-lost",
        what="The checkpoint could not be brought from the laptop that has it.",
        fix="Look that both laptops are connected and have room on their disks; then try again.",
    )
