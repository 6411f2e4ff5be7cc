"""Searches the memory of another process of this user for bytes."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

_CHUNK_BYTES = 64 * 2**20
_OVERLAP_BYTES = 4096
_BYTES_OBJECT = struct.Struct("nn")
"""CPython's ``bytes``: after two other fields come length and hash, then the content and a zero."""


def holds(pid: int, *needles: bytes) -> list[bytes]:
    """The ones that are present."""
    left = set(needles)
    for chunk in _writable(pid):
        left -= {needle for needle in left if needle in chunk}
    return [needle for needle in needles if needle not in left]


def bytes_objects(pid: int, length: int) -> Iterator[bytes]:
    """Candidates for Python ``bytes`` of that length, as random as a key."""
    size = struct.pack("n", length)
    for chunk in _writable(pid):
        at = chunk.find(size)
        while at >= 0:
            begin = at + _BYTES_OBJECT.size
            held = chunk[begin : begin + length + 1]
            if at % 8 == 0 and len(held) == length + 1 and held[-1] == 0 and len(set(held)) > length / 2:
                yield held[:-1]
            at = chunk.find(size, at + 8)


def _writable(pid: int) -> Iterator[bytes]:
    """All writable memory, in overlapping pieces."""
    read = 0
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            where, modes, *_ = line.split()
            if not modes.startswith("rw"):
                continue
            begin, end = (int(each, 16) for each in where.split("-"))
            for at in range(begin, end, _CHUNK_BYTES):
                with contextlib.suppress(OSError, OverflowError):  # already unmapped; a device's
                    memory.seek(at)
                    chunk = memory.read(min(_CHUNK_BYTES + _OVERLAP_BYTES, end - at))
                    read += len(chunk)
                    yield chunk
    assert read > 2**20, "nothing could be read"
