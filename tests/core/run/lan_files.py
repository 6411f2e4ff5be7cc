"""Files between nodes without a network: another node reads an offered file block by block."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from core.project.light_receipts import AnyReceipt
from core.project.receipt import FilePiece
from core.project.send import Extent, NotYet
from core.transfer.machine import FetchMachine
from core.transfer.offer import OfferedFiles
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId

if TYPE_CHECKING:
    from tests.core.run.lan import LanNode


class LanFiles:
    """Like ``core.transfer.hub.Transfers``."""

    def __init__(self, node: LanNode) -> None:
        self._node = node
        self._offers: dict[tuple[DeviceId, ProjectId], OfferedFiles] = {}
        self.limit_bytes = math.inf
        """Bytes beyond it stay under way until the link is cut, so that the cut always comes midway."""
        self.received_bytes = 0
        """Bytes of the newest fetch here."""
        self.came = Counter[str]()
        """Bytes of all fetches here, by file."""

    def offer(self, device: DeviceId, files: OfferedFiles) -> Callable[[], None]:
        self._offers[device, files.manifest] = files

        def withdraw() -> None:
            if self._offers.get((device, files.manifest)) is files:
                del self._offers[device, files.manifest]
            files.close()

        return withdraw

    async def fetch(
        self,
        device: DeviceId,
        receipt: AnyReceipt,
        on_piece: Callable[[], None] = lambda: None,
        *,
        silent_s: float | None = None,
    ) -> None:
        files, digest = receipt.manifest.files, receipt.manifest.digest
        machine = FetchMachine((want.file, want.offset, files[want.file].size) for want in receipt.wanted)
        other, self.received_bytes = self._node.lan.by_device[device].files, 0
        number = 0
        while extents := machine.ask(number):
            data = memoryview(await other.block(self._node.device, digest, extents))
            for extent, part in machine.came(number, data):
                receipt.take(FilePiece(file=extent.file, offset=extent.offset, data=part))
                self.received_bytes += len(part)
                self.came[files[extent.file].path] += len(part)
            on_piece()
            number += 1

    async def block(self, device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        """A block sent from here. Raises ``TandemError``."""
        await asyncio.sleep(0)
        lan, me = self._node.lan, self._node.device
        if not self._node.was_cut.is_set():
            self.limit_bytes -= sum(extent.length for extent in extents)
            if self.limit_bytes < 0:
                await self._node.was_cut.wait()

        def is_there() -> bool:
            return lan.is_lost(me, device) or (
                not lan.is_cut(me, device) and (device, digest) in self._offers
            )

        while True:
            await lan.wait_until(is_there)
            if lan.is_lost(me, device):
                raise TandemError(code="link-gone", what="The link is gone.")
            try:
                return self._offers[device, digest].read(extents)
            except NotYet:
                await asyncio.sleep(0.001)
