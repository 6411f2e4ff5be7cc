"""Frame contents are parsed strictly, whatever a stranger sends."""

import base64
import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pairing.messages import (
    M1,
    M2,
    MAX_FRAME_BYTES,
    Note,
    NoteWord,
    PairOk,
    decode,
    decode_m2_or_note,
    decode_nonce_or_note,
    encode,
)
from core.vocabulary.errors import TandemError
from core.vocabulary.text import MAX_NAME, fit_name

RIGHT = M1(sid=b"s" * 16, cert=b"c" * 500, name="Anna's laptop")


def spelled(**changes: object) -> bytes:
    """M1 as JSON with some fields changed; None removes a field."""
    fields: dict[str, object] = {
        "v": 1,
        "sid": base64.b64encode(b"s" * 16).decode(),
        "cert": base64.b64encode(b"c" * 500).decode(),
        "name": "Anna's laptop",
    }
    fields |= changes
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()


def refusal(body: bytes) -> TandemError:
    with pytest.raises(TandemError) as failure:
        decode(body, M1)
    assert failure.value.fix
    return failure.value


def test_a_message_survives_its_way() -> None:
    assert decode(encode(RIGHT), M1) == RIGHT
    assert spelled() == encode(RIGHT)
    answer = M2(sid=b"s" * 16, cert=b"c", name="B", commit=b"h" * 32)
    assert decode_m2_or_note(encode(answer)) == answer
    assert decode_m2_or_note(encode(Note(note="busy"))) == Note(note="busy")
    assert decode(encode(PairOk(th=b"t" * 32, port=27600)), PairOk) == PairOk(th=b"t" * 32, port=27600)


def test_another_version_is_named_whatever_else_it_says() -> None:
    error = refusal(b'{"v":2,"hello":[1,2,3]}')
    assert error.code == "pairing-version"
    assert "version 2" in error.what
    assert "version 1" in error.what
    assert "this laptop" in error.fix
    assert "the other laptop" in refusal(spelled(v=0)).fix


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 4000,
        b'{"v":1}',
        b'{"v":' + b"9" * 400 + b"}",
        spelled(v="1"),
        spelled(v=True),
        spelled(v=None),
        spelled(sid=None),
        spelled(sid=base64.b64encode(b"s" * 15).decode()),
        spelled(sid="not base64!"),
        spelled(sid=7),
        spelled(cert=base64.b64encode(b"c" * 2049).decode()),
        spelled(cert=""),
        spelled(name=""),
        spelled(name="x" * (MAX_NAME + 1)),
        spelled(name="two\nlines"),
        spelled(name="\u202eright to left"),
        spelled(name=" padded "),
        spelled(name=["a"]),
        spelled(extra=1),
        spelled() + b" ",
        spelled().replace(b'"v":1', b'"v": 1'),
        spelled().replace(b'"v":1', b'"v":1.0'),
        spelled().replace(b'"name"', b'"name":"Bert","name"'),
        b" " * (MAX_FRAME_BYTES + 1),
    ],
)
def test_a_wrong_message_is_refused(body: bytes) -> None:
    assert refusal(body).code in ("pairing-malformed", "pairing-version")


def test_no_note_is_as_long_as_a_nonce() -> None:
    """Otherwise it could be taken for one."""
    for word in get_args(NoteWord):
        assert len(encode(Note(note=word))) != 32
        assert decode_nonce_or_note(encode(Note(note=word))) == Note(note=word)


def test_a_nonce_is_exactly_32_bytes() -> None:
    assert decode_nonce_or_note(b"{" * 32) == b"{" * 32
    for length in (0, 1, 31, 33, 64):
        with pytest.raises(TandemError):
            decode_nonce_or_note(b"n" * length)


@given(st.binary(max_size=600) | st.text(max_size=200).map(str.encode) | st.from_regex(rb'\{"v":1,.*\}'))
def test_no_bytes_raise_anything_but_a_refusal(body: bytes) -> None:
    for read in (
        lambda: decode(body, M1),
        lambda: decode_m2_or_note(body),
        lambda: decode_nonce_or_note(body),
        lambda: decode(body, PairOk),
    ):
        try:
            message = read()
        except TandemError:
            continue
        assert message == body if isinstance(message, bytes) else encode(message) == body


@given(
    st.dictionaries(
        st.sampled_from(["v", "sid", "cert", "name", "commit", "note"]), st.none() | st.integers() | st.text()
    )
)
def test_no_json_raises_anything_but_a_refusal(fields: dict[str, object]) -> None:
    with pytest.raises(TandemError):
        decode_m2_or_note(json.dumps({"v": 1, "sid": 0} | fields).encode())


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_name_is_made_fit_to_be_shown_and_sent(name: str) -> None:
    fit = fit_name(name)
    assert fit_name(fit) == fit
    assert decode(encode(M1(sid=b"s" * 16, cert=b"c", name=fit)), M1).name == fit


def test_a_fit_name_stays_as_it_is() -> None:
    for name in ("Anna's laptop", "Büro 2", "笔记本", "🦊"):
        assert fit_name(name) == name
    assert fit_name(" a\r\n\tb\u202e\0 ") == "a b"
    assert fit_name("\n") == "laptop"
