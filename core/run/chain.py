"""Forwards a run's files to other members while they arrive here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core.project.receipt import Receipt
from core.project.send import NOT_OFFERED, Extent, NotYet
from core.run.context import RunTransfers
from core.transfer.offer import OfferedFiles
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId


class Forwarding:
    """``manifests``: digests of everything the run needs. On the core loop; ``forward`` from any thread."""

    def __init__(self, transfers: RunTransfers, manifests: Iterable[ProjectId]) -> None:
        self._transfers = transfers
        self._files = {digest: _Files(digest) for digest in manifests}
        self._withdraw: dict[DeviceId, list[Callable[[], None]]] = {}
        self._is_over = False

    def offer_to(self, device: DeviceId) -> None:
        """Let this device fetch what arrives here."""
        if not self._is_over and device not in self._withdraw:
            self._withdraw[device] = [
                self._transfers.offer(device, files.offered()) for files in self._files.values()
            ]

    def forward(self, manifest: ProjectId, receipt: Receipt | None) -> None:
        """Forward what ``receipt`` receives; None: these files do not come here: requests are refused."""
        self._files[manifest].begin(receipt)

    def end(self) -> None:
        """Withdraw all offers."""
        self._is_over = True
        for withdraw in [each for of_device in self._withdraw.values() for each in of_device]:
            withdraw()
        self._withdraw.clear()


class _Files:
    """A manifest's files, for any number of devices: a ``Reader``."""

    def __init__(self, digest: ProjectId) -> None:
        self.digest = digest
        self._receipt: Receipt | None = None
        self._is_known = False
        self._offers: tuple[OfferedFiles, ...] = ()

    def offered(self) -> OfferedFiles:
        offer = OfferedFiles(self)
        self._offers += (offer,)
        return offer

    def begin(self, receipt: Receipt | None) -> None:
        self._receipt, self._is_known = receipt, True
        if receipt is not None:
            receipt.on_came = self._more
        self._more()

    def _more(self) -> None:
        for offer in self._offers:
            offer.on_more()

    def read(self, extents: Iterable[Extent]) -> bytes:
        if not self._is_known:
            raise NotYet
        if self._receipt is None:
            raise TandemError.of(NOT_OFFERED)
        return self._receipt.given(extents)

    def outline(self, number: int) -> bytes:
        return b""

    def close(self) -> None:
        pass
