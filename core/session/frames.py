"""Frames on a connection: kind (u8), length (u32, big-endian), body. Pure.

A body is a word (MessagePack, at most ``MAX_WORD_BYTES``) or a piece: bytes of the message of the latest
head, ``PIECE_BYTES`` of them except for the last piece.
"""

from __future__ import annotations

import struct
from typing import Annotated, Protocol, TypeVar

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.text import plain

PIECE_BYTES = 256 * 1024
MAX_WORD_BYTES = 8192
MAX_REASON = 1000
WORD, PIECE = 1, 2
HEADER = struct.Struct(">BI")

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
T = TypeVar("T")


class Readable(Protocol):
    def read_some(self, into: memoryview) -> int: ...


class MalformedFrame(ValueError):
    """The bytes are not a frame, or not one allowed here. The stream can't be read any further."""


class WireWord(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Base of all words. The tag on the wire is the class's name unless the class gives another."""


class Begin(WireWord, frozen=True):
    """First word of a connection, from the leader, then from the follower. All messages before ``message``
    have arrived, and ``bytes`` of that one."""

    session: Number
    message: Number
    bytes: Number


class MessageHead(WireWord, frozen=True, tag="Head"):
    """Message number ``message`` begins, or continues after its first ``offset`` bytes."""

    message: Number
    offset: Number
    size: Number
    about: Annotated[bytes, msgspec.Meta(max_length=MAX_WORD_BYTES)]


class Ack(WireWord, frozen=True):
    """All messages before ``message`` have arrived and need not be kept."""

    message: Number


class Alive(WireWord, frozen=True):
    """Sent after a while without anything else to send."""


class Goodbye(WireWord, frozen=True):
    """The sender leaves for good."""

    code: Annotated[str, msgspec.Meta(max_length=100)]
    what: Annotated[str, msgspec.Meta(max_length=MAX_REASON)]
    fix: Annotated[str, msgspec.Meta(max_length=MAX_REASON)] = ""

    @property
    def problem(self) -> Problem:
        """The reason, safe to show."""
        return Problem(
            code=plain(self.code, 100), what=plain(self.what, MAX_REASON), fix=plain(self.fix, MAX_REASON)
        )


Word = Begin | MessageHead | Ack | Alive | Goodbye
WORDS: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)
_ENCODER = msgspec.msgpack.Encoder()


def goodbye(problem: Problem) -> Goodbye:
    return Goodbye(code=problem.code[:100], what=problem.what[:MAX_REASON], fix=problem.fix[:MAX_REASON])


def encode(word: WireWord) -> bytes:
    """One whole frame."""
    body = _ENCODER.encode(word)
    if len(body) > MAX_WORD_BYTES:
        raise ValueError(f"a word of {len(body)} bytes")
    return HEADER.pack(WORD, len(body)) + body


def piece_header(length: int) -> bytes:
    return HEADER.pack(PIECE, length)


def read_header(header: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Kind and length of the body. Raises ``MalformedFrame`` before a byte of the body is read."""
    kind, length = HEADER.unpack(header)
    if kind not in (WORD, PIECE):
        raise MalformedFrame(f"a frame of kind {kind}")
    if not 0 < length <= (PIECE_BYTES if kind == PIECE else MAX_WORD_BYTES):
        raise MalformedFrame(f"a frame of {length} bytes")
    return kind, length


def pop(received: bytearray) -> tuple[int, bytes] | None:
    """Removes the first frame and returns its kind and body; None: it is incomplete. Raises
    ``MalformedFrame``."""
    if len(received) < HEADER.size:
        return None
    kind, length = read_header(received[: HEADER.size])
    end = HEADER.size + length
    if len(received) < end:
        return None
    body = bytes(received[HEADER.size : end])
    del received[:end]
    return kind, body


def decode(body: bytes | bytearray | memoryview, decoder: msgspec.msgpack.Decoder[T]) -> T:
    """Raises ``MalformedFrame``."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise MalformedFrame(str(error)[:200]) from error


def read(stream: Readable, decoder: msgspec.msgpack.Decoder[T]) -> T:
    """Reads exactly one word. Raises ``OSError``, ``MalformedFrame``."""
    kind, length = read_header(_exactly(stream, HEADER.size))
    if kind != WORD:
        raise MalformedFrame("a piece instead of a word")
    return decode(_exactly(stream, length), decoder)


def _exactly(stream: Readable, length: int) -> memoryview:
    data, at = memoryview(bytearray(length)), 0
    while at < length:
        at += stream.read_some(data[at:])
    return data
