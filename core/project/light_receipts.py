"""Receipts that store no files: of a list of files, kept in memory, and of the outlines of files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from core.project.receipt import FilePiece, Receipt, Wanted, bad_piece
from core.vocabulary.manifest import Listing, Manifest, read_listing


class ListingReceipt:
    """A manifest that is sent as a file. Kept in memory: its size is bounded."""

    uncompared: tuple[int, ...] = ()
    """Always empty."""

    def __init__(self, listing: Listing) -> None:
        self.manifest = listing.as_files
        self._data = bytearray()

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        return (Wanted(file=0, offset=len(self._data)),)

    @property
    def ranges(self) -> Iterator[tuple[int, int, int]]:
        yield 0, len(self._data), self.manifest.total_bytes

    def compare(self, number: int, outline: Callable[[], memoryview]) -> None:
        """Never called."""

    def take(self, piece: FilePiece) -> None:
        """Raises ``TandemError`` where it does not fit."""
        if piece.offset != len(self._data):
            raise bad_piece("a piece of a list of files out of order")
        self._data += piece.data

    def watch(self, check: Callable[[], None]) -> None:
        """Does nothing: no long read needs watching."""

    def finish(self) -> Manifest:
        """Blocks. Raises ``TandemError`` unless it is the announced manifest."""
        if hashlib.sha256(self._data).hexdigest() != self.manifest.files[0].sha256:
            raise bad_piece("a list of files with another content than announced")
        return read_listing(bytes(self._data))


class Outlines:
    """Fetches only the outlines that a receipt compares. Its files come from another laptop."""

    wanted: tuple[Wanted, ...] = ()
    ranges: tuple[tuple[int, int, int], ...] = ()
    """Always empty."""

    def __init__(self, receipt: Receipt) -> None:
        self.manifest, self.uncompared, self.compare = receipt.manifest, receipt.uncompared, receipt.compare
        self.watch = receipt.watch

    def take(self, piece: FilePiece) -> None:
        """Never called."""


AnyReceipt = Receipt | ListingReceipt | Outlines
