"""The trust store while a node runs: changed in memory at once, on disk in order. On the core loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from core.home import trust_file
from core.home.trust import TrustStore


class TrustKeeper:
    """``on_change(before, after)`` comes before the disk: a forgotten device is out at once."""

    def __init__(
        self, folder: Path, store: TrustStore, on_change: Callable[[TrustStore, TrustStore], None]
    ) -> None:
        self._folder = folder
        self._on_change = on_change
        self._writing = asyncio.Lock()
        self._written = store
        self.store = store

    async def change(self, change: Callable[[TrustStore], TrustStore]) -> None:
        """Returns when it is on disk. Raises ``TandemError``: the change cannot be made, or not be kept."""
        store = change(self.store)
        if store is not self.store:
            before, self.store = self.store, store
            self._on_change(before, store)
        async with self._writing:
            newest = self.store
            if newest is not self._written:
                await asyncio.to_thread(trust_file.save, self._folder, newest)
                self._written = newest
