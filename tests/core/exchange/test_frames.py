"""Frames: what went in comes out, and no bytes whatever do more than end the reading."""

from __future__ import annotations

import os
import random
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.exchange import frames
from core.exchange.frames import (
    HEADER,
    MAX_WORD_BYTES,
    PIECE_BYTES,
    Ack,
    Alive,
    Begin,
    Goodbye,
    MalformedFrame,
    MemberHello,
    MessageHead,
    Word,
    decode,
    encode,
    goodbye,
    piece_header,
    read_header,
)
from core.exchange.state import DTYPE_NAMES, MAX_DIMENSIONS, MAX_WORD, Call, Key
from core.vocabulary.errors import Problem

_u32 = st.integers(0, 2**32 - 1)
_u63 = st.integers(0, 2**63 - 1)
_calls = st.builds(
    Call,
    kind=st.sampled_from(["sum", "gather"]),
    dtype=st.sampled_from(sorted(DTYPE_NAMES)),
    shape=st.lists(st.integers(0, 100), max_size=4).map(tuple),
    wire=st.sampled_from(["f32", "bf16", "fp16"]),
    word=st.text(max_size=50),
)
_words: st.SearchStrategy[Word] = st.one_of(
    st.just(Alive()),
    st.builds(Ack, _u63),
    st.builds(Begin, _u63, _u63, _u63),
    st.builds(Goodbye, st.text(max_size=100), st.text(max_size=300), st.text(max_size=300)),
    st.builds(
        MemberHello,
        version=_u32,
        run=st.text(max_size=50),
        rank=st.integers(0, 1023),
        nonce=st.binary(min_size=8, max_size=8),
        carries=st.sampled_from(["from-caller", "to-caller"]),
        seen=_u63,
    ),
    st.builds(
        MessageHead,
        message=_u63,
        offset=st.integers(0, 1000).map(lambda n: n * PIECE_BYTES),
        key=st.builds(Key, _u32, _u32, _u63, _u32),
        phase=st.sampled_from(["part", "total"]),
        call=_calls,
    ),
)
HEAD = MessageHead(message=1, offset=0, key=Key(0, 0, 0, 0), phase="part", call=Call("sum", "float32", (2,)))


@given(_words)
def test_words_come_out_as_they_went_in(word: Word) -> None:
    frame = encode(word)
    kind, length = read_header(frame[: HEADER.size])
    assert (kind, length) == (frames.WORD, len(frame) - HEADER.size)
    assert decode(frame[HEADER.size :]) == word


def test_a_word_keeps_its_name_on_the_wire_whatever_its_class_is_called() -> None:
    assert [each.__struct_config__.tag for each in get_args(Word)] == [
        *("Hello", "Begin", "Head", "Ack", "Alive", "Goodbye")
    ]


@given(st.binary(min_size=HEADER.size, max_size=HEADER.size))
def test_a_header_is_bounded_before_anything_of_its_body_is_read(header: bytes) -> None:
    try:
        kind, length = read_header(header)
    except MalformedFrame:
        return
    assert 0 < length <= {frames.WORD: MAX_WORD_BYTES, frames.PIECE: PIECE_BYTES}[kind]


@pytest.mark.parametrize(
    ("kind", "length"), [(0, 1), (3, 1), (1, 0), (2, 0), (1, 8193), (2, PIECE_BYTES + 1)]
)
def test_a_header_of_another_kind_or_size_is_none(kind: int, length: int) -> None:
    with pytest.raises(MalformedFrame):
        read_header(HEADER.pack(kind, length))


def test_both_ends_cut_messages_and_bound_words_alike() -> None:
    """Another size is another protocol: whoever changes one raises the exchange's version."""
    assert (PIECE_BYTES, MAX_WORD_BYTES, HEADER.size) == (262_144, 8_192, 5)


def test_a_whole_piece_fits() -> None:
    assert read_header(piece_header(PIECE_BYTES)) == (frames.PIECE, PIECE_BYTES)


@pytest.mark.parametrize(
    "changed",
    [
        {"message": -1},
        {"message": 2**63},
        {"offset": 1},
        {"key": [0, 0, 0]},
        {"key": [0, 0, 0, 2**32]},
        {"phase": "both"},
        {"call": ["sum", "object", [2]]},
        {"call": ["sum", "float32", [-1]]},
        {"call": ["sum", "float32", [2**20, 2**20]]},
        {"call": ["sum", "float32", [2**62] * 16]},
        {"call": ["gather", "float32", [2**62, 0]]},
        {"call": ["sum", "float32", [0] * (MAX_DIMENSIONS + 1)]},
        {"call": ["sum", "float32", [2], "f32", "x" * (MAX_WORD + 1)]},
        {"call": ["maximum", "float32", [2]]},
        {"call": ["sum", "float32", [2], "f32", "", 1]},
    ],
    ids=str,
)
def test_a_head_of_anything_else_is_refused(changed: dict[str, object]) -> None:
    fields = msgspec.structs.asdict(HEAD) | changed
    with pytest.raises(MalformedFrame):
        decode(msgspec.msgpack.encode(["Head", *fields.values()]))


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x91" * 8000, msgspec.msgpack.encode(["Nobody"]), msgspec.msgpack.encode({"a": 1})],
    ids=["empty", "no MessagePack", "deep", "unknown", "a map"],
)
def test_what_is_no_word_is_named_so(body: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode(body)


@pytest.mark.parametrize(("own", "narrowed"), [("float32", True), ("float64", False), ("int32", False)])
def test_only_float32_is_narrowed(own: str, narrowed: bool) -> None:
    call = msgspec.convert(["sum", own, [4], "bf16"], Call)
    assert call.is_narrowed == narrowed


def test_a_goodbye_is_cut_to_what_fits() -> None:
    word = goodbye(Problem(code="x" * 200, what="w" * 5000, fix="f" * 5000))
    assert decode(encode(word)[HEADER.size :]) == word


def test_a_goodbye_is_plain_before_it_is_shown() -> None:
    word = Goodbye(code="a\nb", what="One\x1b[2J\u202eline\r\n", fix="\x00Train\u2028again.")
    problem = word.problem
    assert (problem.code, problem.what, problem.fix) == ("a b", "Oneline", "Train again.")


def test_a_callers_word_cannot_spoil_the_line_that_shows_it() -> None:
    assert str(Call("sum", "int8", (1,), word="a\n\u202eb")).isprintable()


FUZZED = int(os.environ.get("TANDEM_FUZZED_FRAMES", "10000"))
"""So many in the test; a longer search sets the variable, to a million, say."""


def test_fuzzed_frames_are_words_or_bad_frames_and_nothing_else() -> None:
    """True frames with bytes changed, cut, doubled and inserted, so that most get past the first checks."""
    source = random.Random(7)
    seeds = [encode(word)[HEADER.size :] for word in (HEAD, Ack(3), Alive(), Begin(1, 2, 3))]
    seeds += [encode(goodbye(Problem(code="a", what="b")))[HEADER.size :]]
    understood = 0
    for _ in range(FUZZED):
        body = bytearray(source.choice(seeds))
        for _ in range(source.randint(0, 4)):
            at = source.randrange(len(body) + 1)
            match source.randrange(4):
                case 0:
                    body[at : at + 1] = source.randbytes(1)
                case 1:
                    del body[at : at + source.randint(1, 9)]
                case 2:
                    body[at:at] = source.randbytes(source.randint(1, 9))
                case _:
                    body[at:at] = body[: source.randint(0, len(body))]
        try:
            word = decode(body)
        except MalformedFrame:
            continue
        understood += 1
        assert decode(encode(word)[HEADER.size :]) == word
    assert FUZZED > understood > FUZZED // 100
