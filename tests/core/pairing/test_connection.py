"""Frames are read whole, and none longer than the limit is awaited."""

import asyncio

import pytest

from core.pairing.connection import framed, read_frame
from core.pairing.messages import MAX_FRAME_BYTES
from core.vocabulary.errors import TandemError


def fed(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def test_frames_survive_a_round_trip() -> None:
    reader = fed(framed(b"one") + framed(b"x" * MAX_FRAME_BYTES))
    assert await read_frame(reader) == b"one"
    assert await read_frame(reader) == b"x" * MAX_FRAME_BYTES
    with pytest.raises(EOFError):
        await read_frame(reader)


@pytest.mark.parametrize("length", [0, MAX_FRAME_BYTES + 1, 2**32 - 1])
async def test_a_wrong_length_is_refused_before_a_byte_of_the_body_is_read(length: int) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(length.to_bytes(4, "big"))
    with pytest.raises(TandemError) as failure:
        await read_frame(reader)
    assert failure.value.code == "pairing-malformed"
    assert str(length) in failure.value.what


async def test_a_frame_that_breaks_off_is_an_end() -> None:
    with pytest.raises(EOFError):
        await read_frame(fed(framed(b"whole")[:-1]))
