"""Finds the newest checkpoint of a run, here or on another laptop, and brings it here. On the core loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from core.cluster.plan import Moment, Resumption
from core.errors import TandemError
from core.ids import DeviceId, RunId
from core.link.messages import CheckpointAsked, CheckpointTold, CheckpointWanted, Chunk
from core.project.manifest import Manifest
from core.project.receipt import Receipt
from core.run import checkpoints, lending
from core.run.workplace import Incoming, Workplace

ASK_S = 15.0
"""A laptop hashes its checkpoint before it answers."""
PIECE_S = 60.0
"""Without a piece for so long, a transfer is given up."""


class Found:
    """A checkpoint of ``run`` with ``files``; ``device`` None: it lies here."""

    def __init__(
        self, run: RunId, moment: Moment, shares: tuple[int, ...], files: Manifest, device: DeviceId | None
    ) -> None:
        self.run = run
        self.moment = moment
        self.shares = shares
        self.files = files
        self.device = device

    @property
    def resumption(self) -> Resumption:
        return Resumption(run=self.run, checkpoint=self.files.digest, moment=self.moment)

    @property
    def order(self) -> tuple[int, int, int, int, bool]:
        """The newest is the largest; of equal ones that which need not travel."""
        at = self.moment
        return at.step, at.fit, at.epoch, at.batch, self.device is None


class Gathering:
    """For one run. ``hear`` takes what others answer."""

    def __init__(self, place: Workplace, run: RunId) -> None:
        self.run = run
        self._place = place
        self._asked: set[DeviceId] = set()
        self._unheard: set[DeviceId] = set()
        self._found: list[Found] = []
        self._answered = asyncio.Event()
        self._from: DeviceId | None = None
        self._incoming: Incoming | None = None
        self._heard = asyncio.Event()
        self._done: asyncio.Future[None] | None = None

    async def find(self, devices: Iterable[DeviceId]) -> Found | None:
        """Asks these devices, waits at most ``ASK_S``; None where nobody has one."""
        mine = await self._place.files.do(lending.own, self._place, self.run)
        if mine is not None:
            checkpoint, files = mine
            self._found.append(
                Found(self.run, checkpoint.head.moment, checkpoint.head.shares, files, device=None)
            )
        self._unheard = set(devices)
        for device in tuple(self._unheard):
            if self._place.links.send(device, CheckpointAsked(run=self.run)):
                self._asked.add(device)
        try:
            async with asyncio.timeout(ASK_S if self._asked else 0.0):
                await self._answered.wait()
        except TimeoutError:
            pass
        return max(self._found, key=lambda found: found.order, default=None)

    @property
    def silent(self) -> tuple[DeviceId, ...]:
        """Those who did not answer."""
        return tuple(self._unheard)

    async def fetch(self, found: Found) -> Path:
        """Its folder here. Raises ``TandemError``."""
        kept = self._place.folder(self.run) / checkpoints.FOLDER
        if found.device is not None:
            await self._receive(found, kept)
        here = await self._place.files.do(checkpoints.find, kept, found.files.digest)
        if here is None:
            raise _lost()
        return Path(here.folder)

    def hear(self, device: DeviceId, message: CheckpointTold | Chunk) -> None:
        if isinstance(message, CheckpointTold):
            self._on_told(device, message)
        elif device == self._from and self._incoming is not None:
            self._heard.set()
            if message.project != self._incoming.project or not self._incoming.take(message):
                self._over(_lost())

    def _on_told(self, device: DeviceId, told: CheckpointTold) -> None:
        if device not in self._asked:
            return
        self._asked.discard(device)
        self._unheard.discard(device)
        if told.moment is not None and told.files is not None:
            try:
                checkpoints.check_listing(told.files)
                self._found.append(Found(self.run, told.moment, told.shares, told.files, device))
            except TandemError:
                pass  # As good as none.
        if not self._asked:
            self._answered.set()

    async def _receive(self, found: Found, kept: Path) -> None:
        assert found.device is not None
        self._from = found.device
        done = self._done = asyncio.get_running_loop().create_future()
        incoming = self._incoming = Incoming(
            self._place,
            found.files.digest,
            found.files.total_bytes,
            on_piece=lambda received: None,
            on_complete=lambda: self._over(None),
            on_trouble=self._over,
        )

        def begin() -> None:
            place = checkpoints.next_place(kept)
            incoming.receipt = Receipt(found.files, kept / "incoming", place)

        await self._place.files.do(begin)
        assert incoming.receipt is not None
        self._place.links.send(found.device, CheckpointWanted(run=self.run, checkpoint=found.files.digest))
        try:
            while not done.done():
                self._heard.clear()
                heard = asyncio.ensure_future(self._heard.wait())
                await asyncio.wait({heard, done}, timeout=PIECE_S, return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                if not self._heard.is_set() and not done.done():
                    raise _lost()
            done.result()
            await self._place.files.do(incoming.receipt.finish)
        finally:
            incoming.end()
            self._incoming = None

    def _over(self, error: Exception | None) -> None:
        if self._done is None or self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)


def _lost() -> TandemError:
    return TandemError(
        code="checkpoint-lost",
        what="The checkpoint could not be brought from the laptop that has it.",
        fix="Look that both laptops are connected and have room on their disks; then try again.",
    )
