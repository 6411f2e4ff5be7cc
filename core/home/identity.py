"""This device's key and certificate on disk: made once, read and checked at each start. Blocks: use a thread.

Security invariant: the key file is created with O_EXCL|O_NOFOLLOW as 0600 in a 0700 folder, and a key that
others could have read is refused.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from core.home.certificate import build, device_id, fingerprint
from core.home.private_file import make_private_folder, read_private, sync_folder, write_atomically, write_new
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId


@dataclass(frozen=True, slots=True)
class Identity:
    """This device's identity. The private key stays in its file; OpenSSL reads it from there."""

    cert_der: bytes
    key_path: Path
    cert_path: Path

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(self.cert_der)

    @property
    def device_id(self) -> DeviceId:
        return device_id(self.cert_der)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Set this pair as the context's own."""
        context.load_cert_chain(self.cert_path, self.key_path)


def load_or_create(folder: Path) -> Identity:
    """The identity kept in ``folder`` (``key.pem``, ``cert.pem``); a new one where there is none.

    Raises ``TandemError`` where the folder or a file has the wrong owner or mode, or can't be read.
    """
    make_private_folder(folder)
    key_path, cert_path = folder / "key.pem", folder / "cert.pem"
    try:
        key = _load_key(key_path) if _exists(key_path) else _create_key(key_path, cert_path)
        # The certificate follows from the key, so a lost one comes back with the same fingerprint.
        der = build(key)
        pem = ssl.DER_cert_to_PEM_cert(der).encode()
        if not _exists(cert_path):
            write_atomically(cert_path, pem)
        else:
            der = _load_certificate(cert_path, key)
    except OSError as error:
        raise TandemError(
            code="identity-unwritable",
            what=f"This device's key can't be kept in {folder} ({error.strerror or error}).",
            fix="Make the folder writable for you, free some space, or choose another home with --home DIR.",
        ) from error
    return Identity(cert_der=der, key_path=key_path, cert_path=cert_path)


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _create_key(key_path: Path, cert_path: Path) -> Ed25519PrivateKey:
    if _exists(cert_path):
        raise TandemError(
            code="key-missing",
            what=f"{cert_path} is there, but its key {key_path} is not.",
            fix=f"Put the key back, or delete {cert_path} for a new identity and pair your devices again.",
        )
    key = Ed25519PrivateKey.generate()
    write_new(key_path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    sync_folder(key_path.parent)
    return key


def _load_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(read_private(path), password=None)
    except (ValueError, TypeError) as error:
        raise _corrupt(path, "key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _corrupt(path, "key")
    return key


def _load_certificate(path: Path, key: Ed25519PrivateKey) -> bytes:
    """The certificate on disk: its bytes are what peers pinned. Must belong to ``key``."""
    try:
        der = ssl.PEM_cert_to_DER_cert(read_private(path).decode("ascii"))
        same = x509.load_der_x509_certificate(der).public_key() == key.public_key()
    except ValueError as error:
        raise _corrupt(path, "certificate") from error
    if not same:
        raise TandemError(
            code="identity-mismatch",
            what=f"{path} does not belong to the key beside it.",
            fix=f"Delete {path}: it is made again from the key.",
        )
    return der


def _corrupt(path: Path, what: str) -> TandemError:
    mends = {
        "key": "Put a good copy back, or delete it and cert.pem for a new identity; then pair again.",
        "certificate": f"Delete {path}: it is made again from the key.",
    }
    return TandemError(
        code="identity-corrupt", what=f"This device's {what} in {path} can't be read.", fix=mends[what]
    )
