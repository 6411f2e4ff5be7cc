"""The hashes of ``tandem-pair-1``: commitment, the six digits, and the proof over TLS. Pure."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

NONCE_BYTES = 32


def hashed(tag: str, *parts: bytes) -> bytes:
    """SHA-256 of ``tag``, a zero byte, and each part prefixed with its length (u32 big-endian)."""
    digest = hashlib.sha256(tag.encode("ascii") + b"\0")
    for part in parts:
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()


def commitment(fp_responder: bytes, fp_initiator: bytes, nonce_responder: bytes, m1: bytes) -> bytes:
    """Binds the responder before it sees the initiator's nonce. ``m1``: SHA-256 of the raw body."""
    return hashed("tandem-pair-1/commit", fp_responder, fp_initiator, nonce_responder, m1)


def equal(one: bytes, other: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(one, other)


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that both sides saw: fingerprints, nonces, and the SHA-256 of the raw bodies of M1 and
    M2."""

    fp_initiator: bytes
    fp_responder: bytes
    nonce_initiator: bytes
    nonce_responder: bytes
    m1: bytes
    m2: bytes

    @property
    def code(self) -> str:
        """Six digits, as ``408355``."""
        number = int.from_bytes(self._hashed("tandem-pair-1/sas")[:8], "big") % 1_000_000
        return f"{number:06d}"

    @property
    def proof(self) -> bytes:
        """``th``: the value that each side sends inside mutual TLS."""
        return self._hashed("tandem-pair-1/th")

    def _hashed(self, tag: str) -> bytes:
        return hashed(
            tag,
            self.fp_initiator,
            self.fp_responder,
            self.nonce_initiator,
            self.nonce_responder,
            self.m1,
            self.m2,
        )


def shown(code: str) -> str:
    """``408355`` as people read it: ``408 355``."""
    return f"{code[:3]} {code[3:]}"
