"""Frames: what was sent comes out, however it was cut; what was never a message stops the reading."""

from __future__ import annotations

import asyncio
import math
import struct
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.link.frames import BadFrame, Decoder, decode, encode, read_body
from core.project.receipt import PIECE_BYTES
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import MemberProgressed
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.peer_messages import (
    MAX_FRAME_BYTES,
    Bye,
    Chunk,
    Message,
    Mirrored,
    Ping,
    Reported,
    StopAsked,
    TelemetrySent,
)
from core.vocabulary.progress import Progress
from tests.core.link.examples import hello, reading

_text = st.text(max_size=40)
_messages: st.SearchStrategy[Message] = st.one_of(
    st.just(Ping()),
    st.builds(lambda what, fix: Bye(problem=Problem(code="x", what=what, fix=fix)), _text, _text),
    st.builds(lambda run, force: StopAsked(run=RunId(run), force=force), _text, st.integers(0, 2)),
    st.builds(hello, _text),
    st.builds(
        lambda file, offset, data: Chunk(
            run=RunId("r"), project=ProjectId("p"), file=file, offset=offset, data=data
        ),
        st.integers(0, 5000),
        st.integers(0, 2**40),
        st.binary(max_size=3000),
    ),
)


@given(messages=st.lists(_messages, max_size=6), cuts=st.lists(st.integers(0, 20_000), max_size=8))
def test_messages_come_out_as_they_went_in_however_the_bytes_are_cut(
    messages: list[Message], cuts: list[int]
) -> None:
    stream = b"".join(encode(message) for message in messages)
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    decoder = Decoder()
    out = [m for begin, end in pairwise(ends) for m in decoder.feed(stream[begin:end])]
    assert out == messages


@given(data=st.binary(max_size=400))
def test_garbage_gives_messages_or_bad_frame_and_nothing_else(data: bytes) -> None:
    decoder = Decoder()
    try:
        for _ in decoder.feed(data):
            pass
    except BadFrame as problem:
        assert problem.code == "bad-frame"


@given(body=st.binary(max_size=200))
def test_any_body_is_a_message_or_a_bad_frame(body: bytes) -> None:
    try:
        message = decode(body)
    except BadFrame:
        return
    assert decode(encode(message)[4:]) == message


@given(length=st.integers(MAX_FRAME_BYTES + 1, 2**32 - 1))
def test_a_huge_frame_is_refused_by_its_length_before_its_body_comes(length: int) -> None:
    with pytest.raises(BadFrame):
        list(Decoder().feed(struct.pack(">I", length)))


def test_the_good_frames_before_a_bad_one_still_come() -> None:
    messages = Decoder().feed(encode(Ping()) + struct.pack(">I", 3) + b"\xc1\xc1\xc1")
    assert next(messages) == Ping()
    with pytest.raises(BadFrame):
        next(messages)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        msgspec.msgpack.encode({"type": "no_such_message"}),
        msgspec.msgpack.encode({"type": "stop_asked"}),
        msgspec.msgpack.encode({"type": "stop_asked", "run": 7}),
        msgspec.msgpack.encode(["ping"]),
        b"\x91" * 200_000,
        msgspec.msgpack.encode({"type": "ping", "x": 1})[:-1] + b"\x91" * 200_000,
    ],
    ids=["empty", "unknown", "field missing", "wrong type", "no map", "deep", "deep in an unknown field"],
)
def test_what_is_no_message_is_named_so(body: bytes) -> None:
    with pytest.raises(BadFrame) as failure:
        decode(body)
    assert failure.value.fix


def test_a_chunk_of_full_size_fits_into_a_frame() -> None:
    chunk = Chunk(run=RunId("r" * 24), project=ProjectId("p" * 64), file=1, offset=2, data=bytes(PIECE_BYTES))
    assert list(Decoder().feed(encode(chunk))) == [chunk]


def test_a_message_too_large_to_send_says_so() -> None:
    chunk = Chunk(run=RunId("r"), project=ProjectId("p"), file=1, offset=2, data=bytes(MAX_FRAME_BYTES))
    with pytest.raises(TandemError) as failure:
        encode(chunk)
    assert failure.value.code == "message-too-large"


async def test_reading_one_body_leaves_the_rest_and_judges_the_length_first() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(encode(Ping()) + struct.pack(">I", 5000))
    assert decode(await read_body(reader)) == Ping()
    with pytest.raises(BadFrame):
        await read_body(reader, limit=4096)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_ends_the_reading(number: float) -> None:
    """JSON would make null of it, which no second process could read."""
    progress = Progress(at_s=1.0, epoch=0, epochs=1, step=0, batch=0, logs={"loss": number})
    event = MemberProgressed(run=RunId("r"), device=DeviceId("d"), progress=progress)
    messages: tuple[Message, ...] = (
        TelemetrySent(reading=reading(number), busy=False),
        Reported(event=event),
        Mirrored(event=event),
    )
    for message in messages:
        with pytest.raises(BadFrame):
            decode(encode(message)[4:])
    assert decode(encode(TelemetrySent(reading=reading(), busy=False))[4:])
