"""Where files are split, and which parts of one version another contains."""

import hashlib
import io
import random

import pytest

from core.project.chunks import Chunk, chunks, packed, reused, unpacked

DATA = random.Random(0).randbytes(6_000_000)


def cut(data: bytes, size: int = 0) -> list[Chunk]:
    return list(chunks(io.BytesIO(data), size or len(data)))


@pytest.mark.parametrize("data", [b"", b"x", DATA[:70_000], DATA, bytes(3_000_000)], ids=len)
def test_chunks_are_the_whole_file_each_with_its_hash(data: bytes) -> None:
    found = cut(data)
    assert unpacked(packed(found), len(data)) == found
    for chunk in found:
        part = data[chunk.offset : chunk.offset + chunk.length]
        assert 0 < len(part) == chunk.length <= 1 << 18
        assert hashlib.sha256(part).digest().startswith(chunk.sha256)


@pytest.mark.parametrize(
    "changed",
    [
        b"new" + DATA,
        DATA[:3_000_000] + b"inserted" + DATA[3_000_000:],
        DATA[:3_000_000] + DATA[3_000_001:],
        DATA[:3_000_000] + b"\0" + DATA[3_000_001:],
        DATA + b"appended",
    ],
    ids=["before", "inserted", "gone", "changed", "appended"],
)
def test_a_change_affects_only_the_chunks_around_it(changed: bytes) -> None:
    found = reused(cut(changed), cut(DATA, len(changed)))
    assert len(changed) - sum(part.chunk.length for part in found) < 3 << 18
    for chunk, offset in found:
        there = DATA[offset : offset + chunk.length]
        assert changed[chunk.offset : chunk.offset + chunk.length] == there


def test_a_large_file_has_longer_chunks_so_that_their_list_stays_short() -> None:
    assert len(cut(DATA, 100 << 30)) < len(cut(DATA)) / 8


@pytest.mark.parametrize("size, data", [(5, b"\0\0\0\x04" + bytes(16)), (4, b"\0\0\0\x04" + bytes(15))])
def test_a_chunk_list_that_does_not_fit_the_file_is_refused(size: int, data: bytes) -> None:
    with pytest.raises(ValueError):
        unpacked(data, size)
