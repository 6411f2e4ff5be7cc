"""One fetch of files from one device: requests what a receipt wants, and passes on what arrives."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol

from core.project.light_receipts import AnyReceipt
from core.project.receipt import FilePiece
from core.transfer.machine import FetchMachine, Patience, Unasked
from core.vocabulary.errors import Problem, TandemError


class FileLane(Protocol):
    """The lane to the device that has the files."""

    def ask(self, fetch: Fetch) -> bool:
        """Ask for what the fetch wants next. False: it wants nothing now. Raises ``TandemError`` if the lane
        has ended."""

    def outline(self, fetch: Fetch, file: int) -> None:
        """Ask for a file's packed chunks. Raises ``TandemError`` if the lane has ended."""

    def forget(self, fetch: Fetch) -> None:
        """Discard further answers for this fetch."""


class Fetch:
    """Fetches what a receipt wants. ``run`` blocks, in a thread of its own; ``stop`` ends it from any other.

    ``on_piece`` is called from that thread, after each block. ``silent_s``: the longest wait for a block;
    None: until the lane ends.
    """

    def __init__(
        self,
        lane: FileLane,
        receipt: AnyReceipt,
        on_piece: Callable[[], None],
        silent_s: float | None = None,
    ) -> None:
        self.manifest = receipt.manifest.digest
        self.machine = FetchMachine(())
        self._lane, self._receipt, self._on_piece = lane, receipt, on_piece
        self._came: SimpleQueue[tuple[int, memoryview] | Problem] = SimpleQueue()
        self._patience, self._silent_s = Patience(), silent_s
        self._stopped: Problem | None = None

    def arrived(self, number: int, data: memoryview) -> None:
        self._came.put((number, data))

    def stop(self, problem: Problem) -> None:
        self._stopped = problem
        self._came.put(problem)

    def run(self) -> None:
        """Fetch everything. Raises ``TandemError``."""
        self._receipt.watch(self._check)
        try:
            for file in self._receipt.uncompared:
                self._lane.outline(self, file)
                self._receipt.compare(file, lambda: self._next()[1])
                self._on_piece()
            self.machine = FetchMachine(self._receipt.ranges)
            while not self.machine.is_done:
                while self._lane.ask(self):
                    pass
                self._take(*self._next())
        finally:
            self._lane.forget(self)

    def _check(self) -> None:
        """Raises ``TandemError`` if the fetch was stopped."""
        if self._stopped is not None:
            raise TandemError.of(self._stopped)

    def _next(self) -> tuple[int, memoryview]:
        """The next block. Raises ``TandemError``."""
        since_s = time.monotonic()
        try:
            came = self._came.get(timeout=self._silent_s)
        except Empty:
            raise TandemError.of(_SILENT) from None
        if isinstance(came, Problem):
            raise TandemError.of(came)
        if not self._patience.holds(time.monotonic() - since_s, len(came[1])):
            raise TandemError.of(_TRICKLES)
        return came

    def _take(self, number: int, data: memoryview) -> None:
        try:
            for extent, part in self.machine.came(number, data):
                self._receipt.take(FilePiece(file=extent.file, offset=extent.offset, data=part))
        except Unasked as error:
            raise TandemError.of(broken(str(error))) from error
        self._on_piece()


_TRICKLES = Problem(
    code="transfer-too-slow",
    what="The files arrive too slowly: less than 10 kB a second.",
    fix="Bring the laptops closer together or use a cable, and start the run again; it continues from here.",
)
_SILENT = Problem(code="transfer-silent", what="The other laptop is not sending the files.")


def broken(detail: str) -> Problem:
    return Problem(
        code="transfer-broken",
        what="The other laptop sent something that is not a Tandem message.",
        fix="Start the run again. If it happens again, update Tandem on both laptops.",
        detail=detail[:200],
    )
