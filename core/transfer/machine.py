"""What one fetch requests next, and what may arrive for it. No I/O, no clock, no thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from core.project.send import Extent
from core.transfer.words import BLOCK_BYTES, MOST_EXTENTS

WINDOW = 8
"""Maximum number of outstanding blocks: 8 MiB in transit keep a slow connection busy."""


GRACE_S, SLOWEST_BYTES_S = 120.0, 10_000.0
"""A peer may be this long behind this rate."""
LONGEST_GAP_S = 30.0
"""Longest wait that counts: a laptop that was away for minutes is not slow."""


class Patience:
    """Detects a peer that sends a little now and then, without end."""

    def __init__(self) -> None:
        self._left_s = GRACE_S

    def holds(self, waited_s: float, size: int) -> bool:
        """Count a wait for ``size`` bytes. False: all waits together were too long for what arrived."""
        self._left_s += size / SLOWEST_BYTES_S - min(waited_s, LONGEST_GAP_S)
        self._left_s = min(self._left_s, GRACE_S)
        return self._left_s > 0


class Unasked(ValueError):
    """Something came that was not requested, or out of order."""


class FetchMachine:
    """The requests of one fetch. ``wanted``: file number, first missing byte, end. Parts arrive in this
    order."""

    def __init__(self, wanted: Iterable[tuple[int, int, int]]) -> None:
        self._wanted = deque((file, at, end) for file, at, end in wanted if at < end)
        self._asked: deque[tuple[int, tuple[Extent, ...]]] = deque()

    @property
    def is_done(self) -> bool:
        return not self._wanted and not self._asked

    def ask(self, number: int) -> tuple[Extent, ...]:
        """The parts to request now, under this number; empty: none, or none until a block has arrived."""
        if len(self._asked) >= WINDOW:
            return ()
        extents, room = list[Extent](), BLOCK_BYTES
        while self._wanted and room and len(extents) < MOST_EXTENTS:
            file, at, end = self._wanted.popleft()
            length = min(end - at, room)
            extents.append(Extent(file, at, length))
            room -= length
            if at + length < end:
                self._wanted.appendleft((file, at + length, end))
        if extents:
            self._asked.append((number, tuple(extents)))
        return tuple(extents)

    def came(self, number: int, data: memoryview) -> Iterator[tuple[Extent, memoryview]]:
        """Split a block that arrived into its parts with their bytes. Raises ``Unasked``."""
        if not self._asked or self._asked[0][0] != number:
            raise Unasked(f"block {number}")
        extents, at = self._asked[0][1], 0
        if len(data) != sum(extent.length for extent in extents):
            raise Unasked(f"{len(data)} bytes as block {number}")
        self._asked.popleft()
        for extent in extents:
            yield extent, data[at : at + extent.length]
            at += extent.length
