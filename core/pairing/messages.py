"""The contents of pairing frames, read strictly: each message has one spelling, each field its bounds. Pure.

Frame = u32 big-endian length (at most 4096) + body. M1, M2, notes and PAIR_OK are JSON; M3 and M4 are 32 raw
bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec

from core.home.certificate import MAX_DER_BYTES
from core.pairing import problems
from core.pairing.code import NONCE_BYTES
from core.vocabulary.bounds import Word
from core.vocabulary.errors import TandemError
from core.vocabulary.text import MAX_NAME, fit_name

VERSION = 1
MAX_FRAME_BYTES = 4096
LENGTH_BYTES = 4
SID_BYTES = 16

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Certificate = Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_DER_BYTES)]
SessionId = Annotated[bytes, msgspec.Meta(min_length=SID_BYTES, max_length=SID_BYTES)]
Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]

NoteWord = Literal[
    "version", "busy", "paused", "self", "refused", "glare", "same", "different", "cancelled", "timeout"
]
REFUSALS: dict[str, NoteWord] = {"pairing-version": "version", "pairing-self": "self"}
"""The note for a refused message, by the code of its problem; for all others ``refused``."""


class M1(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Initiator to responder: who asks."""

    v: int = VERSION
    sid: SessionId
    cert: Certificate
    name: Name


class M2(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Responder to initiator: who answers, with ``commit`` to a nonce that it reveals last."""

    v: int = VERSION
    sid: SessionId
    cert: Certificate
    name: Name
    commit: Hash


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message beside the protocol: why one side gives up, or that its user said *Same*.

    Anybody could forge it, so it is never trusted: ``same`` only says that the proof may begin.
    """

    v: int = VERSION
    note: NoteWord


class PairOk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sent inside mutual TLS: the proof ``th``, and the port on which the sender listens."""

    v: int = VERSION
    th: Hash
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class _Head(msgspec.Struct):
    v: int
    note: Word | None = None


JsonMessage = TypeVar("JsonMessage", M1, M2, Note, PairOk)


def encode(message: M1 | M2 | Note | PairOk) -> bytes:
    return msgspec.json.encode(message)


def decode(body: bytes, kind: type[JsonMessage]) -> JsonMessage:
    """Raises ``TandemError``: ``pairing-version`` or ``pairing-malformed``."""
    _head(body)
    try:
        message = msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TandemError.of(problems.malformed(f"a wrong {kind.__name__} ({str(error)[:200]})")) from error
    if encode(message) != body:
        # Doubled fields or odd spellings: two readers could see two different messages.
        raise TandemError.of(problems.malformed(f"a {kind.__name__} that is not in the protocol's form"))
    if isinstance(message, M1 | M2) and fit_name(message.name) != message.name:
        raise TandemError.of(problems.malformed("its name has characters that can't be shown safely"))
    return message


def decode_m2_or_note(body: bytes) -> M2 | Note:
    """The responder's first answer. Raises ``TandemError``."""
    return decode(body, M2) if _head(body).note is None else decode(body, Note)


def decode_nonce_or_note(body: bytes) -> bytes | Note:
    """M3 or M4: exactly 32 bytes, a length that no note has. Raises ``TandemError``."""
    if len(body) == NONCE_BYTES:
        return body
    if not body.startswith(b"{"):
        raise TandemError.of(problems.malformed(f"{len(body)} bytes instead of {NONCE_BYTES}"))
    return decode(body, Note)


def _head(body: bytes) -> _Head:
    if len(body) > MAX_FRAME_BYTES:
        raise TandemError.of(problems.malformed(f"a message of {len(body)} bytes"))
    try:
        head = msgspec.json.decode(body, type=_Head)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TandemError.of(problems.malformed("a message that can't be read")) from error
    if head.v != VERSION:
        raise TandemError.of(problems.version(head.v, VERSION))
    return head
