"""Certificates for tests: valid ones, and each invalid kind."""

from __future__ import annotations

import hashlib
import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from core.home.certificate import build
from core.home.identity import Identity

Key = Ed25519PrivateKey | ec.EllipticCurvePrivateKey


def device_key(number: int) -> Ed25519PrivateKey:
    """A key that is the same in each test run."""
    return Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big"))


def device_certificate(number: int) -> bytes:
    return build(device_key(number))


def odd_certificate(
    *,
    ca: bool | None = False,
    key: Key | None = None,
    signer: Key | None = None,
    padding: int = 0,
    years: tuple[int, int] = (2000, 2100),
) -> bytes:
    """A certificate that may be an authority's (``ca``), lack that extension (None), or have a foreign key.

    ``years``: from the first day of one to the first day of the other.
    """
    key = key or device_key(99)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "odd")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(years[0], 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(years[1], 1, 1, tzinfo=UTC))
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    if padding:
        names = [x509.DNSName("a" * 60 + f".{number}") for number in range(padding // 60)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signer = signer or key
    algorithm = hashes.SHA256() if isinstance(signer, ec.EllipticCurvePrivateKey) else None
    return builder.sign(signer, algorithm).public_bytes(Encoding.DER)


def misnamed_certificate(number: int) -> bytes:
    """In Tandem's form and signed, with a name that is no text."""
    key = device_key(number)
    der = build(key)
    body = x509.load_der_x509_certificate(der).tbs_certificate_bytes
    raw = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    name = hashlib.sha256(raw).hexdigest().encode()
    broken = body.replace(name, b"\xff" * len(name))
    assert broken != body
    return der.replace(body, broken)[:-64] + key.sign(broken)  # an Ed25519 signature comes last


def identity_of(key: Ed25519PrivateKey, der: bytes, folder: Path) -> Identity:
    """An identity on disk with any certificate, as an attacker might make it."""
    folder.mkdir(parents=True)
    key_path, cert_path = folder / "key.pem", folder / "cert.pem"
    key_path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    cert_path.write_text(ssl.DER_cert_to_PEM_cert(der))
    return Identity(cert_der=der, key_path=key_path, cert_path=cert_path)
