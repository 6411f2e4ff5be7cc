"""Our own certificate has the promised properties; each wrong kind of a peer's is refused."""

import hashlib
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from core.home.certificate import (
    build,
    check_peer_certificate,
    device_id,
    fingerprint,
    is_named_by_its_key,
    out_of_date,
)
from core.vocabulary.errors import TandemError
from tests.core.certificates import device_certificate, device_key, misnamed_certificate, odd_certificate


def test_a_certificate_names_its_key_and_is_valid_whatever_the_clock_says() -> None:
    certificate = x509.load_der_x509_certificate(device_certificate(1))

    [name] = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    assert len(name.value) == 64
    assert certificate.not_valid_before_utc.year == 2000
    assert certificate.not_valid_after_utc.year == 9999
    for extension in (x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier, x509.SubjectAlternativeName):
        certificate.extensions.get_extension_for_class(extension)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert not constraints.value.ca


def test_the_device_id_is_the_fingerprint_of_the_certificate() -> None:
    der = device_certificate(1)
    assert fingerprint(der) == hashlib.sha256(der).digest()
    assert device_id(der) == hashlib.sha256(der).hexdigest()


def test_one_key_always_gives_the_same_certificate_and_two_keys_different_ones() -> None:
    assert build(device_key(1)) == build(device_key(1))
    assert build(device_key(1)) != build(device_key(2))


def test_a_valid_certificate_is_accepted() -> None:
    check_peer_certificate(device_certificate(1))


@pytest.mark.parametrize(
    ("der", "why"),
    [
        (odd_certificate(ca=True), "CA:TRUE"),
        (odd_certificate(ca=None), "does not say"),
        (odd_certificate(key=ec.generate_private_key(ec.SECP256R1())), "not an Ed25519"),
        (odd_certificate(signer=device_key(7)), "not signed with its own key"),
        (odd_certificate(padding=3000), "at most 2048"),
        (device_certificate(1) + b"\0", "can't be read"),
        (device_certificate(1) + device_certificate(2), "can't be read"),
        (device_certificate(1)[:-1], "can't be read"),
        (odd_certificate().replace(b"\x02\x01\x01", b"\x02\x01\xff"), "can't be read"),
        (b"", "can't be read"),
        (b"-----BEGIN CERTIFICATE-----", "can't be read"),
    ],
)
def test_a_wrong_certificate_is_refused_with_the_reason(der: bytes, why: str) -> None:
    with pytest.raises(TandemError) as failure:
        check_peer_certificate(der)
    assert failure.value.code == "bad-certificate"
    assert why in failure.value.what
    assert failure.value.fix


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_altered_certificate_raises_anything_but_a_refusal(data: st.DataObject) -> None:
    der = bytearray(device_certificate(1))
    for _ in range(data.draw(st.integers(1, 4))):
        der[data.draw(st.integers(0, len(der) - 1))] ^= data.draw(st.integers(1, 255))
    if bytes(der) == device_certificate(1):
        return
    with pytest.raises(TandemError):
        check_peer_certificate(bytes(der))


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_no_garbage_raises_anything_but_a_refusal(garbage: bytes) -> None:
    with pytest.raises(TandemError):
        check_peer_certificate(garbage)


def test_an_unsigned_byte_of_the_certificate_cannot_be_another() -> None:
    """The algorithm is named twice, and only the first is signed: two certificates would be one device."""
    der = device_certificate(1)
    ed25519 = bytes.fromhex("06032b6570")
    second = der.rindex(ed25519)
    assert der.index(ed25519) != second
    for at in range(second, second + len(ed25519)):
        altered = bytearray(der)
        altered[at] ^= 1
        with pytest.raises(TandemError):
            check_peer_certificate(bytes(altered))


def test_a_keys_certificate_is_the_same_in_every_version() -> None:
    """It is made again if its file was lost, and others use its fingerprint as the device's id."""
    assert device_id(build(device_key(1))) == (
        "2a0ffc04eb7579949451944fba411d104d164c2b7cfca620cb3f687df32ee1ed"
    )


@pytest.mark.parametrize(
    ("der", "year", "code", "words"),
    [
        (
            odd_certificate(years=(2000, 2020)),
            2026,
            "certificate-expired",
            "Ben's certificate expired on 2020-01-01",
        ),
        (odd_certificate(years=(2030, 2040)), 2026, "certificate-early", "begins on 2030-01-01"),
        (device_certificate(1), 1970, "certificate-early", "clock says 1970-06-01"),
    ],
)
def test_an_out_of_date_certificate_is_reported_with_its_date(
    der: bytes, year: int, code: str, words: str
) -> None:
    problem = out_of_date(der, "Ben's", datetime(year, 6, 1, tzinfo=UTC))
    assert problem is not None and problem.code == code
    assert words in problem.what and problem.fix


def test_a_problem_of_this_laptops_own_certificate_names_no_other_laptop() -> None:
    der, now = odd_certificate(years=(2000, 2020)), datetime(2026, 6, 1, tzinfo=UTC)
    own, other = out_of_date(der, "This laptop's own", now, mine=True), out_of_date(der, "Ben's", now)
    assert own is not None and "of this laptop's Tandem" in own.fix and "that laptop" not in own.fix
    assert other is not None and "of that laptop's Tandem" in other.fix


def test_our_own_certificates_are_never_out_of_date() -> None:
    for year in (2001, 2026, 9999):
        assert out_of_date(device_certificate(1), "Ben's", datetime(year, 6, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize("der", [odd_certificate(), misnamed_certificate(2), b"none"])
def test_a_certificate_is_named_by_its_key_or_refused(der: bytes) -> None:
    assert is_named_by_its_key(device_certificate(2))
    assert not is_named_by_its_key(der)
