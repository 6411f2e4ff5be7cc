"""A device's certificate: made here for our own key, checked here for a peer's. Pure.

A fingerprint is the SHA-256 of the whole certificate (DER), and a certificate can't contain its own hash: its
common name is the SHA-256 of its public key instead. That is just as unique, which OpenSSL's lookup by name
needs.
"""

from __future__ import annotations

import hashlib
import ssl
import warnings
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, SignatureAlgorithmOID

from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId

MAX_DER_BYTES = 2048

_UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    CryptographyDeprecationWarning,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)

# Laptop clocks are wrong sometimes, and a pin does not expire: its user forgets it.
_FIRST_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def fingerprint(der: bytes) -> bytes:
    """SHA-256 of a certificate's DER, 32 bytes."""
    return hashlib.sha256(der).digest()


def device_id(der: bytes) -> DeviceId:
    """The device that a certificate (DER) identifies."""
    return DeviceId(fingerprint(der).hex())


def build(key: Ed25519PrivateKey) -> bytes:
    """The self-signed certificate (DER) of ``key``: always the same for one key, so it can be made again."""
    public = key.public_key()
    raw = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    key_id = hashlib.sha256(raw).hexdigest()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, key_id)])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    both_ends = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(int(key_id[:30], 16) + 1)
        .not_valid_before(_FIRST_DAY)
        .not_valid_after(_LAST_DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(both_ends, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(f"{key_id[:32]}.tandem")]),
            critical=False,
        )
    )
    return builder.sign(key, algorithm=None).public_bytes(Encoding.DER)


def out_of_date(der: bytes, whose: str, now: datetime | None = None, *, mine: bool = False) -> Problem | None:
    """Why TLS would refuse this certificate by its dates; None: it would not. ``whose``: such as ``Ben's``.

    ``mine``: it is this laptop's own. Tandem's certificates never expire (``build``): another program's may
    have, or this laptop's clock may be wrong.
    """
    certificate, now = x509.load_der_x509_certificate(der), now or datetime.now(UTC)
    if now > (last := certificate.not_valid_after_utc):
        return Problem(
            code="certificate-expired",
            what=f"{whose} certificate expired on {last:%Y-%m-%d}: connections with it will be refused.",
            fix=f"Delete identity/cert.pem in the home of {'this' if mine else 'that'} laptop's Tandem, "
            f"and restart it to make a new one; then pair {'all laptops' if mine else 'the two'} again. If "
            "the date is in the future, set this laptop's clock.",
        )
    if now < (first := certificate.not_valid_before_utc):
        return Problem(
            code="certificate-early",
            what=f"{whose} certificate begins on {first:%Y-%m-%d}, and this laptop's clock says "
            f"{now:%Y-%m-%d}: connections with it will be refused.",
            fix="Set this laptop's clock.",
        )
    return None


def check_peer_certificate(der: bytes) -> None:
    """Raise ``TandemError`` (``bad-certificate``) unless ``der`` has the form of Tandem's device
    certificates.

    Does not check its dates (``out_of_date``).
    """
    if len(der) > MAX_DER_BYTES:
        raise _bad(f"it has {len(der)} bytes; at most {MAX_DER_BYTES} are allowed")
    try:
        with warnings.catch_warnings():
            # The library only warns about some defects, such as a negative serial number, that it will refuse
            # one day: refuse them now.
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            certificate = x509.load_der_x509_certificate(der)
            public = certificate.public_key()
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound as error:
        raise _bad("it does not say whether it is a device's or an authority's") from error
    except _UNREADABLE as error:
        raise _bad("it can't be read") from error
    if constraints.ca:
        # A pinned authority could vouch for other keys: a pin must identify one device.
        raise _bad("it is an authority's (CA:TRUE), not a device's")
    if not isinstance(public, Ed25519PublicKey):
        raise _bad("its key is not an Ed25519 key")
    if certificate.signature_algorithm_oid != SignatureAlgorithmOID.ED25519:
        # The algorithm's outer name is not signed (RFC 5280, 4.1.1.2): allow one spelling per certificate.
        raise _bad("its signature is not named an Ed25519 one")
    try:
        public.verify(certificate.signature, certificate.tbs_certificate_bytes)
    except InvalidSignature as error:
        raise _bad("it is not signed with its own key") from error
    try:
        # OpenSSL must be able to load it, or one pin would break the context of all links.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
    except ssl.SSLError as error:
        raise _bad("OpenSSL can't read it") from error


def is_named_by_its_key(der: bytes) -> bool:
    """Whether a certificate's name is the one that ``build`` derives from its key."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        raw = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hashlib.sha256(raw).hexdigest())])
        return certificate.subject == certificate.issuer == name
    except _UNREADABLE:
        return False


def _bad(why: str) -> TandemError:
    return TandemError(
        code="bad-certificate",
        what=f"The other device's certificate was refused: {why}.",
        fix="Check that the other device runs an unaltered Tandem, then pair again.",
    )
