"""Frames between two members: kind (u8), length (u32, big-endian), body. Pure.

A body is a word (MessagePack, at most ``MAX_WORD_BYTES``) or a piece (raw bytes of the message whose head
came last; ``PIECE_BYTES``, but for the last). How many bytes a message has follows from its head. Numbers
travel as they lie in memory, little-endian.
"""

from __future__ import annotations

import struct
import sys
from typing import Annotated, Literal

import msgspec

from core.exchange.state import MAX_PACK_BYTES, Call, Key, Phase
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain
from core.vocabulary.versions import EXCHANGE

VERSION = EXCHANGE
PIECE_BYTES = 256 * 1024
"""A multiple of every item's size: a whole piece holds whole numbers."""
MAX_WORD_BYTES = 8192
MAX_REASON = 1000
WORD, PIECE = 1, 2
HEADER = struct.Struct(">BI")

if sys.byteorder != "little":
    raise ImportError("members exchange numbers as they lie in memory, which must be little-endian")

_U63 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Nonce = Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]


class MalformedFrame(ValueError):
    """What came is no frame of the exchange. The connection can't be read on after it."""


class _Word(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Each names itself by its tag, the class's name unless it says another. They are the protocol's."""


class MemberHello(_Word, frozen=True, tag="Hello"):
    """The first word both ways on each connection: what was dialled, for whom.

    ``seen``: the number of the newest session that the caller knew of when it dialled.
    """

    version: int
    run: Annotated[str, msgspec.Meta(max_length=200)]
    rank: Annotated[int, msgspec.Meta(ge=0, lt=1024)]
    nonce: _Nonce
    carries: Literal["from-caller", "to-caller"]
    seen: _U63 = 0


class Begin(_Word, frozen=True):
    """The first word of a session, by the lower rank, then by the other: all messages before ``message`` are
    here, and ``bytes`` of that one."""

    session: _U63
    message: _U63
    bytes: _U63


class MessageHead(_Word, frozen=True, tag="Head"):
    """Message number ``message`` begins, or goes on after its first ``offset`` bytes."""

    message: _U63
    offset: _U63
    key: Key
    phase: Phase
    call: Call


class Ack(_Word, frozen=True):
    """All messages before ``message`` are here: they need not be sent again."""

    message: _U63


class Alive(_Word, frozen=True):
    """Nothing to say for a while."""


class Goodbye(_Word, frozen=True):
    code: Annotated[str, msgspec.Meta(max_length=100)]
    what: Annotated[str, msgspec.Meta(max_length=MAX_REASON)]
    fix: Annotated[str, msgspec.Meta(max_length=MAX_REASON)] = ""

    @property
    def problem(self) -> Problem:
        """Plain, as it will be shown."""
        return Problem(
            code=plain(self.code, 100), what=plain(self.what, MAX_REASON), fix=plain(self.fix, MAX_REASON)
        )


Word = MemberHello | Begin | MessageHead | Ack | Alive | Goodbye

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


def encode(word: Word) -> bytes:
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


def decode(body: bytes | bytearray | memoryview) -> Word:
    """The word in a frame's body. Raises ``MalformedFrame``."""
    try:
        word = _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise MalformedFrame(str(error)[:200]) from error
    if isinstance(word, MessageHead):
        if word.call.nbytes > MAX_PACK_BYTES:
            raise MalformedFrame(f"a pack of more than {MAX_PACK_BYTES} bytes")
        if any(length > MAX_PACK_BYTES for length in word.call.shape):
            raise MalformedFrame("a pack of nothing, in very many rows")
        if word.offset % PIECE_BYTES:
            raise MalformedFrame("a message that continues within a piece")
    return word


def goodbye(problem: Problem) -> Goodbye:
    return Goodbye(code=problem.code[:100], what=problem.what[:MAX_REASON], fix=problem.fix[:MAX_REASON])
