"""Files that one device may fetch from here."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable

from core.project.send import Extent, Reader
from core.transfer.words import BLOCK_BYTES
from core.vocabulary.errors import TandemError


class OfferedFiles:
    """Files for one device. ``on_failed``: called at most once, on the loop where this object was made.
    ``yields``: leaves the network to a training under way here."""

    def __init__(
        self,
        reader: Reader,
        on_failed: Callable[[TandemError], None] | None = None,
        *,
        yields: bool = False,
    ) -> None:
        self.manifest, self.yields = reader.digest, yields
        self.on_more: Callable[[], None] = lambda: None
        self.withdrawn = threading.Event()
        self._reader = reader
        self._on_failed, self._loop = on_failed, asyncio.get_running_loop()

    def read(self, extents: Iterable[Extent]) -> bytes:
        """The bytes of these parts. Call this and the other methods from one thread. Raises ``TandemError``;
        ``NotYet``: try again after the next ``on_more``."""
        return self._reporting(lambda: self._reader.read(extents))

    def outline(self, file: int) -> bytes:
        """A file's packed chunks; empty where they are too long to send. Raises ``TandemError``."""
        outline = self._reporting(lambda: self._reader.outline(file))
        return outline if len(outline) <= BLOCK_BYTES else b""

    def _reporting(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except TandemError as error:
            on_failed, self._on_failed = self._on_failed, None
            if on_failed:
                with contextlib.suppress(RuntimeError):  # the node has ended
                    self._loop.call_soon_threadsafe(on_failed, error)
            raise

    def close(self) -> None:
        self._reader.close()
