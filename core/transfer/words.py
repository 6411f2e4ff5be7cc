"""Messages between two nodes that move files. Pure; every incoming message is bounded."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from core.project.send import Extent
from core.session.frames import Goodbye, Number, WireWord
from core.vocabulary.bounds import Word

VERSION = 1
MOST_EXTENTS = 256
"""Limit of one ``Ask``, which keeps it below ``core.session.frames.MAX_WORD_BYTES``."""
BLOCK_BYTES = 1 << 20
"""Most bytes per request."""


class LaneCall(WireWord, frozen=True):
    """The first word on a connection, from the caller. ``link``: the key of the link's session."""

    version: int
    link: Annotated[bytes, msgspec.Meta(max_length=64)]
    nonce: Annotated[bytes, msgspec.Meta(max_length=64)]
    carries: Literal["from-caller", "to-caller"]
    seen: Number


class Ask(WireWord, frozen=True):
    """Send these parts of a manifest's files, one after the other. Answered by ``Here`` or ``Denied``."""

    number: Number
    manifest: Word
    extents: Annotated[tuple[Extent, ...], msgspec.Meta(min_length=1, max_length=MOST_EXTENTS)]

    @property
    def total_bytes(self) -> int:
        return sum(extent.length for extent in self.extents)


class Outline(WireWord, frozen=True):
    """Send the packed chunks of a manifest's file. Answered like ``Ask``."""

    number: Number
    manifest: Word
    file: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Here(WireWord, frozen=True):
    """The bytes that ``number`` asked for follow."""

    number: Number


class Denied(WireWord, frozen=True):
    """The bytes are not available."""

    number: Number
    why: Goodbye


LaneWord = Ask | Outline | Here | Denied
WORDS: msgspec.msgpack.Decoder[LaneWord] = msgspec.msgpack.Decoder(LaneWord)
LANE_CALL: msgspec.msgpack.Decoder[LaneCall] = msgspec.msgpack.Decoder(LaneCall)
