"""Keys and certificates that authenticate members of one generation of a run, and nothing else.

A node makes its member's pair; the certificates (DER, some 500 bytes) travel with the ports over the nodes'
own links, the private key only through the pipe to its trainer. The laptop's identity never enters the
process that runs the script.
Security invariants: a run's private key is never on a disk (except encrypted, on Windows), and no ``repr``
shows it. A member's rank follows from its certificate, byte by byte, never from its own claim.
"""

from __future__ import annotations

import os
import secrets
import ssl
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from core.exchange.problems import bad_pins
from core.home.certificate import build, check_peer_certificate
from core.net import tls
from core.vocabulary.errors import TandemError


@dataclass(frozen=True, slots=True)
class RunPair:
    """A member's certificate, and its private key: the 32 bytes of an Ed25519 key."""

    cert_der: bytes
    private_key: bytes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Set this pair as the context's own."""
        key = Ed25519PrivateKey.from_private_bytes(self.private_key)
        password = None if _pipes_have_paths() else secrets.token_hex().encode()
        protection = BestAvailableEncryption(password) if password else NoEncryption()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)
        # OpenSSL loads a context's own key only from a path. A pipe's path never reaches a disk. Where pipes
        # have no path, a file holds the key for a moment, under a password that only this process knows.
        with (
            _readable(ssl.DER_cert_to_PEM_cert(self.cert_der).encode()) as certificate,
            _readable(pem) as own,
        ):
            context.load_cert_chain(certificate, own, password)


def make() -> RunPair:
    """Make a new pair."""
    key = Ed25519PrivateKey.generate()
    return RunPair(build(key), key.private_bytes_raw())


def derive(secret: bytes, run: str, rank: int) -> RunPair:
    """The pair of member ``rank`` in a run whose members share ``secret``, which is never transmitted (RFC
    5869).

    Every member can derive everybody's pair: trust rests on the secret alone. ``secret``: at least 32 bytes
    that nobody can guess; the pairs differ for each run.
    """
    info = b"tandem-member-1\0%d\0%s" % (rank, run.encode())
    seed = HKDF(hashes.SHA256(), length=32, salt=None, info=info).derive(secret)
    return RunPair(build(Ed25519PrivateKey.from_private_bytes(seed)), seed)


def _pipes_have_paths() -> bool:
    return sys.platform != "win32"


@contextmanager
def _readable(data: bytes) -> Iterator[str]:
    """A path from which ``data`` can be read once. It must fit into a pipe."""
    if not _pipes_have_paths():
        with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
            path = Path(folder) / "key.pem"
            path.write_bytes(data)
            yield str(path)
        return
    read, write = os.pipe()
    try:
        try:
            os.write(write, data)
        finally:
            os.close(write)
        yield f"/dev/fd/{read}"
    finally:
        os.close(read)


class Keyring:
    """One member's own pair, and the others' certificates by rank. Raises ``TandemError`` for unusable
    ones."""

    def __init__(self, own: tls.KeyPair, pins: Mapping[int, bytes]) -> None:
        if len(set(pins.values())) != len(pins) or own.cert_der in pins.values():
            raise bad_pins("two members have the same one")
        for rank, pin in pins.items():
            try:
                check_peer_certificate(pin)
            except TandemError as error:
                raise bad_pins(f"member {rank}'s is unfit ({error.what})") from error
        self._rank_of = {pin: rank for rank, pin in pins.items()}
        self._pins = dict(pins)
        self.members = len(pins) + 1
        # Created once, so that strangers who connect can't make us read files.
        self.server: ssl.SSLContext = tls.server_context(own, pins.values())
        self._clients = {rank: tls.client_context(own, pin) for rank, pin in pins.items()}

    def client(self, rank: int) -> ssl.SSLContext:
        return self._clients[rank]

    def rank_of(self, certificate: bytes) -> int | None:
        """The owner's rank; None if it belongs to no member of this run and generation."""
        return self._rank_of.get(certificate)
