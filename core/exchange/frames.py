"""The members' frames around a session: the hello on each connection, and the heads of messages.

Numbers travel in their memory layout, little-endian.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import msgspec

from core.exchange.state import MAX_PACK_BYTES, Call, Key, Phase
from core.session.frames import MalformedFrame, Number, WireWord, decode

VERSION = 4
"""Version of the trainers' protocol: a trainer with another version is refused."""

if sys.byteorder != "little":
    raise ImportError("members exchange numbers in their memory layout, which must be little-endian")

_Nonce = Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]


class MemberHello(WireWord, frozen=True, tag="Hello"):
    """First frame in both directions of each connection: version, run, and ranks.

    ``seen``: the number of the newest session that the caller knew of when it dialled.
    """

    version: int
    run: Annotated[str, msgspec.Meta(max_length=200)]
    rank: Annotated[int, msgspec.Meta(ge=0, lt=1024)]
    nonce: _Nonce
    carries: Literal["from-caller", "to-caller"]
    seen: Number = 0


class PackHead(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Describes a session's message; its size in bytes follows from it."""

    key: Key
    phase: Phase
    call: Call


HELLO = msgspec.msgpack.Decoder(MemberHello)
_HEADS = msgspec.msgpack.Decoder(PackHead)
_ENCODER = msgspec.msgpack.Encoder()


def encode_head(head: PackHead) -> bytes:
    return _ENCODER.encode(head)


def decode_head(about: bytes) -> PackHead:
    """Raises ``MalformedFrame``."""
    head = decode(about, _HEADS)
    if head.call.nbytes > MAX_PACK_BYTES:
        raise MalformedFrame(f"a pack of more than {MAX_PACK_BYTES} bytes")
    if any(length > MAX_PACK_BYTES for length in head.call.shape):
        raise MalformedFrame("an empty pack with very many rows")
    return head
