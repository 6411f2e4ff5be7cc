"""Frames: round trips work for any split; bytes that were never a message stop the reading."""

from __future__ import annotations

import asyncio
import math
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.link.frames import BadFrame, decode, encode, read_body
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import MemberProgressed
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import (
    MAX_FRAME_BYTES,
    BusyTold,
    Bye,
    EventTold,
    Message,
    StopAsked,
    TelemetrySent,
)
from core.vocabulary.progress import Progress
from tests.core.link.examples import hello, reading

_text = st.text(max_size=40)
_messages: st.SearchStrategy[Message] = st.one_of(
    st.just(BusyTold(busy=True)),
    st.builds(lambda what, fix: Bye(problem=Problem(code="x", what=what, fix=fix)), _text, _text),
    st.builds(lambda run, force: StopAsked(run=RunId(run), force=force), _text, st.integers(0, 2)),
    st.builds(hello, _text),
)


@given(messages=st.lists(_messages, max_size=6))
async def test_messages_survive_a_round_trip(messages: list[Message]) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"".join(encode(message) for message in messages))
    assert [decode(await read_body(reader)) for _ in messages] == messages


@given(body=st.binary(max_size=200))
def test_any_body_is_a_message_or_a_bad_frame(body: bytes) -> None:
    try:
        message = decode(body)
    except BadFrame:
        return
    assert decode(encode(message)[4:]) == message


@given(length=st.integers(MAX_FRAME_BYTES + 1, 2**32 - 1))
async def test_a_huge_frame_is_refused_by_its_length_before_its_body_comes(length: int) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(struct.pack(">I", length))
    with pytest.raises(BadFrame):
        await read_body(reader)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        msgspec.msgpack.encode({"type": "no_such_message"}),
        msgspec.msgpack.encode({"type": "kept_asked", "number": 1}),
        msgspec.msgpack.encode({"type": "stop_asked"}),
        msgspec.msgpack.encode({"type": "stop_asked", "run": 7}),
        msgspec.msgpack.encode(["busy_told"]),
        b"\x91" * 200_000,
        msgspec.msgpack.encode({"type": "busy_told", "busy": True, "x": 1})[:-1] + b"\x91" * 200_000,
    ],
    ids=[
        "empty",
        "unknown",
        "of an older Tandem",
        "field missing",
        "wrong type",
        "no map",
        "deep",
        "deep in an unknown field",
    ],
)
def test_invalid_messages_are_refused(body: bytes) -> None:
    with pytest.raises(BadFrame) as failure:
        decode(body)
    assert failure.value.fix


def test_a_message_too_large_to_send_says_so() -> None:
    with pytest.raises(TandemError) as failure:
        encode(StopAsked(run=RunId("r" * MAX_FRAME_BYTES)))
    assert failure.value.code == "message-too-large"


async def test_reading_one_body_leaves_the_rest_and_judges_the_length_first() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(encode(BusyTold(busy=True)) + struct.pack(">I", 5000))
    assert decode(await read_body(reader)) == BusyTold(busy=True)
    with pytest.raises(BadFrame):
        await read_body(reader, limit=4096)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_ends_the_reading(number: float) -> None:
    """JSON would turn NaN into null, which no second process could read."""
    progress = Progress(at_s=1.0, epoch=0, epochs=1, step=0, batch=0, logs={"loss": number})
    event = MemberProgressed(run=RunId("r"), device=DeviceId("d"), progress=progress)
    messages: tuple[Message, ...] = (
        TelemetrySent(reading=reading(number)),
        EventTold(event=event),
    )
    for message in messages:
        with pytest.raises(BadFrame):
            decode(encode(message)[4:])
    assert decode(encode(TelemetrySent(reading=reading()))[4:])
