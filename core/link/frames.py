"""Encoding of a link's messages, and the frames of its hellos: u32 big-endian length, then MessagePack.

Pure, except for ``read_body``.
"""

from __future__ import annotations

import asyncio
import math
import struct

import msgspec

from core.vocabulary.errors import TandemError
from core.vocabulary.peer_messages import MAX_FRAME_BYTES, EventTold, Message, TelemetrySent

_LENGTH = struct.Struct(">I")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class BadFrame(TandemError):
    """The received bytes are not a valid frame. The connection can't be read any further."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            code="bad-frame",
            what="The other device sent something that is not a Tandem message.",
            fix="Install the same version of Tandem on both laptops.",
            detail=detail,
        )


def encode(message: Message) -> bytes:
    """The message as one frame. Raises ``TandemError`` if it is too large to be sent."""
    whole = body(message)
    return _LENGTH.pack(len(whole)) + whole


def body(message: Message) -> bytes:
    """The message as a frame's body. Raises ``TandemError`` if it is too large to be sent."""
    body = _ENCODER.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise TandemError(
            code="message-too-large",
            what=f"A message of {len(body)} bytes is too large to be sent ({MAX_FRAME_BYTES} at most).",
            fix="Take files out of the project's folder, or list them in .tandemignore.",
            detail=type(message).__name__,
        )
    return body


def decode(body: bytes | bytearray | memoryview) -> Message:
    """The message in a frame's body. Raises ``BadFrame``."""
    try:
        message = _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadFrame(str(error)[:200]) from error
    if isinstance(message, TelemetrySent | EventTold) and not _finite(msgspec.to_builtins(message)):
        # JSON has no such numbers: they would become null on the local socket and in the history.
        raise BadFrame("an infinite number or NaN")
    return message


def _finite(value: object) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_finite, value.values()))
        case list() | tuple():
            return all(map(_finite, value))
    return True


async def read_body(reader: asyncio.StreamReader, limit: int = MAX_FRAME_BYTES) -> bytes:
    """One frame's body, and nothing after it. Raises ``BadFrame``, ``IncompleteReadError``, ``OSError``."""
    # readexactly ignores the stream's own limit: check the length before reading a byte of the body.
    return await reader.readexactly(_length(await reader.readexactly(_LENGTH.size), limit))


def _length(head: bytes | bytearray, limit: int = MAX_FRAME_BYTES) -> int:
    length: int = _LENGTH.unpack_from(head)[0]
    if length > limit:
        raise BadFrame(f"a frame of {length} bytes, where {limit} are allowed")
    return length
