"""Splits files at positions that their content determines, so that an insertion moves only the next cut.
Blocks: use a thread.

A cut is made where a hash of the last 32 bytes begins with zeros: the gear hash of FastCDC (Xia et al.,
USENIX ATC 2016, https://www.usenix.org/conference/atc16/technical-sessions/presentation/xia).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from core.project.files import UNWATCHED, ReadMeter
from core.runtime.regular_file import READ_BYTES

if TYPE_CHECKING:
    import numpy as np

LEAST_BYTES = 256 * 1024
"""A smaller file is sent whole."""
_WINDOW = 32
_HASH_BYTES = 16
_ENTRY = struct.Struct(f">I{_HASH_BYTES}s")


class Chunk(NamedTuple):
    """``sha256``: its first bytes. They find equal chunks; the hash of the whole file is the proof."""

    offset: int
    length: int
    sha256: bytes


class Reused(NamedTuple):
    """The position of a chunk's bytes in another version of the file."""

    chunk: Chunk
    offset: int


def chunks(file: BinaryIO, size: int, meter: ReadMeter = UNWATCHED) -> Iterator[Chunk]:
    """Chunks of the unread rest of ``file``. ``size``: bytes of the version to be sent, which both sides
    know; larger files have longer chunks. Raises ``OSError``."""
    bits = 16 + (size >> 31).bit_length()
    least, most = 1 << (bits - 2), 1 << (bits + 2)
    begin = at = 0
    before, digest = b"", hashlib.sha256()
    while block := file.read(READ_BYTES):
        meter.add(len(block))
        done = 0
        for end in [*_candidates(before, block, bits), len(block) + least]:
            while (cut := min(at + end, begin + most)) - begin >= least and cut <= at + len(block):
                digest.update(block[done : cut - at])
                yield Chunk(begin, cut - begin, digest.digest()[:_HASH_BYTES])
                done, begin, digest = cut - at, cut, hashlib.sha256()
        digest.update(block[done:])
        before, at = block[-_WINDOW + 1 :], at + len(block)
    if at > begin:
        yield Chunk(begin, at - begin, digest.digest()[:_HASH_BYTES])


def packed(found: Iterable[Chunk]) -> bytes:
    return b"".join(_ENTRY.pack(chunk.length, chunk.sha256) for chunk in found)


def unpacked(data: bytes | memoryview, size: int) -> list[Chunk]:
    """Raises ``ValueError`` unless these are chunks of a file of ``size`` bytes."""
    found, at = list[Chunk](), 0
    if len(data) % _ENTRY.size:
        raise ValueError("a part of a chunk")
    for length, sha256 in _ENTRY.iter_unpack(data):
        found.append(Chunk(at, length, sha256))
        at += length
    if at != size:
        raise ValueError(f"chunks of {at} bytes for a file of {size}")
    return found


def reused(new: Iterable[Chunk], old: Iterable[Chunk]) -> list[Reused]:
    """The chunks of ``new`` that ``old`` contains, in order, with their offsets in ``old``."""
    here = {(chunk.sha256, chunk.length): chunk.offset for chunk in old}
    return [Reused(chunk, at) for chunk in new if (at := here.get((chunk.sha256, chunk.length))) is not None]


@cache
def _gear() -> np.ndarray:
    import numpy as np  # not when a node starts: it takes a tenth of a second

    words = [hashlib.sha256(bytes([byte])).digest()[:4] for byte in range(256)]
    return np.frombuffer(b"".join(words), dtype=">u4").astype(np.uint32)


def _candidates(before: bytes, block: bytes, bits: int) -> list[int]:
    """Positions in the block where a chunk may end. ``before``: the bytes before the block."""
    import numpy as np

    hashes = _gear()[np.frombuffer(before + block, dtype=np.uint8)]
    step = 1
    while step < _WINDOW:  # hashes of the last 1, 2, 4 … 32 bytes
        hashes[step:] += hashes[:-step] << np.uint32(step)
        step *= 2
    ends = np.flatnonzero(hashes[len(before) :] >> np.uint32(32 - bits) == 0) + 1
    return [int(end) for end in ends]
