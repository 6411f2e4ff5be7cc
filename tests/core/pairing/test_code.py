"""The hashes, against the protocol's own test vector."""

import hashlib
from dataclasses import replace

import pytest

from core.pairing.code import Transcript, commitment, equal, hashed, shown

M1, M2 = hashlib.sha256(b"M1").digest(), hashlib.sha256(b"M2").digest()
VECTOR = Transcript(
    fp_initiator=b"\x11" * 32,
    fp_responder=b"\x22" * 32,
    nonce_initiator=b"\x33" * 32,
    nonce_responder=b"\x44" * 32,
    m1=M1,
    m2=M2,
)


def test_the_commitment_matches_the_test_vector() -> None:
    commit = commitment(VECTOR.fp_responder, VECTOR.fp_initiator, VECTOR.nonce_responder, M1)
    assert commit.hex() == "cfb3af8bddea4ab1767fc1ee1c6292db354b6e5c31ea92e8b3ed916538c47ce9"


def test_the_code_matches_the_test_vector() -> None:
    assert VECTOR.code == "408355"
    assert shown(VECTOR.code) == "408 355"


def test_the_proof_matches_the_test_vector() -> None:
    assert VECTOR.proof.hex() == "7bbf4aa87d8ce1674778f40620c79c2de98a236b881ed66214887ed9d51540d8"


@pytest.mark.parametrize("part", list(Transcript.__slots__))
def test_every_part_of_the_transcript_enters_code_and_proof(part: str) -> None:
    other = replace(VECTOR, **{part: b"\x55" * 32})
    assert other.code != VECTOR.code
    assert other.proof != VECTOR.proof


def test_bytes_cant_move_from_one_part_to_the_next() -> None:
    assert hashed("t", b"ab", b"c") != hashed("t", b"a", b"bc")
    assert hashed("t", b"ab") != hashed("t", b"ab", b"")


def test_a_small_number_keeps_its_six_digits() -> None:
    assert any(replace(VECTOR, m1=number.to_bytes(32, "big")).code.startswith("0") for number in range(200))
    assert all(len(replace(VECTOR, m1=number.to_bytes(32, "big")).code) == 6 for number in range(200))


def test_hashes_are_compared_whole() -> None:
    assert equal(b"a" * 32, b"a" * 32)
    assert not equal(b"a" * 32, b"a" * 31)
