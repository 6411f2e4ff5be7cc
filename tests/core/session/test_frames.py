"""Frames: round trips work, and arbitrary bytes do no more than end the reading."""

from __future__ import annotations

import os
import random
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.session import frames
from core.session.frames import (
    HEADER,
    MAX_WORD_BYTES,
    PIECE_BYTES,
    WORDS,
    Ack,
    Alive,
    Begin,
    Goodbye,
    MalformedFrame,
    MessageHead,
    Word,
    decode,
    encode,
    goodbye,
    piece_header,
    read_header,
)
from core.vocabulary.errors import Problem

_u63 = st.integers(0, 2**63 - 1)
_words: st.SearchStrategy[Word] = st.one_of(
    st.just(Alive()),
    st.builds(Ack, _u63),
    st.builds(Begin, _u63, _u63, _u63),
    st.builds(Goodbye, st.text(max_size=100), st.text(max_size=300), st.text(max_size=300)),
    st.builds(MessageHead, message=_u63, offset=_u63, size=_u63, about=st.binary(max_size=500)),
)


@given(_words)
def test_words_survive_a_round_trip(word: Word) -> None:
    frame = encode(word)
    kind, length = read_header(frame[: HEADER.size])
    assert (kind, length) == (frames.WORD, len(frame) - HEADER.size)
    assert decode(frame[HEADER.size :], WORDS) == word


def test_a_word_keeps_its_name_on_the_wire_whatever_its_class_is_called() -> None:
    tags = [each.__struct_config__.tag for each in get_args(Word)]
    assert tags == ["Begin", "Head", "Ack", "Alive", "Goodbye"]


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
def test_a_header_of_another_kind_or_size_is_refused(kind: int, length: int) -> None:
    with pytest.raises(MalformedFrame):
        read_header(HEADER.pack(kind, length))


def test_both_ends_cut_messages_and_bound_words_alike() -> None:
    """Another size is another protocol: changing one requires a new exchange version."""
    assert (PIECE_BYTES, MAX_WORD_BYTES, HEADER.size) == (262_144, 8_192, 5)


def test_a_whole_piece_fits() -> None:
    assert read_header(piece_header(PIECE_BYTES)) == (frames.PIECE, PIECE_BYTES)


def test_a_word_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ValueError, match="a word of"):
        encode(MessageHead(message=0, offset=0, size=0, about=bytes(MAX_WORD_BYTES)))


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x91" * 8000, msgspec.msgpack.encode(["Nobody"]), msgspec.msgpack.encode({"a": 1})],
    ids=["empty", "no MessagePack", "deep", "unknown", "a map"],
)
def test_invalid_words_are_refused(body: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode(body, WORDS)


def test_a_goodbye_is_cut_to_what_fits() -> None:
    word = goodbye(Problem(code="x" * 200, what="w" * 5000, fix="f" * 5000))
    assert decode(encode(word)[HEADER.size :], WORDS) == word


def test_a_goodbye_is_plain_before_it_is_shown() -> None:
    word = Goodbye(code="a\nb", what="One\x1b[2J\u202eline\r\n", fix="\x00Train\u2028again.")
    problem = word.problem
    assert (problem.code, problem.what, problem.fix) == ("a b", "Oneline", "Train again.")


FUZZED = int(os.environ.get("TANDEM_FUZZED_FRAMES", "10000"))
"""Number in the test; a longer search sets the variable to, say, a million."""


def test_fuzzed_frames_are_words_or_bad_frames_and_nothing_else() -> None:
    """Valid frames with bytes changed, cut, doubled and inserted, so that most pass the first checks."""
    source = random.Random(7)
    words = (MessageHead(message=1, offset=0, size=2, about=b"x"), Ack(3), Alive(), Begin(1, 2, 3))
    seeds = [encode(word)[HEADER.size :] for word in words]
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
            word = decode(body, WORDS)
        except MalformedFrame:
            continue
        understood += 1
        assert decode(encode(word)[HEADER.size :], WORDS) == word
    assert FUZZED > understood > FUZZED // 100


@given(
    st.lists(_words, max_size=6),
    st.binary(min_size=1, max_size=50),
    st.lists(st.integers(1, 90), max_size=30),
)
def test_frames_are_extracted_whole_however_the_bytes_are_cut(
    words: list[Word], piece: bytes, cuts: list[int]
) -> None:
    stream = b"".join(map(encode, words)) + piece_header(len(piece)) + piece
    received, taken = bytearray(), []
    for length in (*cuts, len(stream)):
        received += stream[:length]
        stream = stream[length:]
        while (frame := frames.pop(received)) is not None:
            taken.append(frame)
    assert [decode(body, WORDS) for _, body in taken[:-1]] == words
    assert taken[-1] == (frames.PIECE, piece) and not received
