"""A member's hello and its messages: round trips work, and anything else is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.exchange.frames import HELLO, MemberHello, PackHead, decode_head, encode_head
from core.exchange.state import DTYPE_NAMES, MAX_DIMENSIONS, MAX_LABEL, Call, Key
from core.session.frames import HEADER, PIECE_BYTES, MalformedFrame, decode, encode

_u32 = st.integers(0, 2**32 - 1)
_u63 = st.integers(0, 2**63 - 1)
HEAD = PackHead(key=Key(0, 0, 0, 0), phase="part", call=Call("sum", "float32", (2,)))


@given(
    st.builds(
        MemberHello,
        version=_u32,
        run=st.text(max_size=50),
        rank=st.integers(0, 1023),
        nonce=st.binary(min_size=8, max_size=8),
        carries=st.sampled_from(["from-caller", "to-caller"]),
        seen=_u63,
    )
)
def test_a_hello_survives_a_round_trip(hello: MemberHello) -> None:
    assert decode(encode(hello)[HEADER.size :], HELLO) == hello


def test_every_version_says_hello_alike() -> None:
    """Otherwise members of different versions could not report the mismatch."""
    hello = MemberHello(version=1, run="r", rank=1, nonce=bytes(8), carries="to-caller", seen=2)
    assert msgspec.msgpack.decode(encode(hello)[HEADER.size :]) == [
        "Hello",
        1,
        "r",
        1,
        bytes(8),
        "to-caller",
        2,
    ]


@given(
    st.builds(
        PackHead,
        key=st.builds(Key, _u32, _u32, _u63, _u32),
        phase=st.sampled_from(["part", "total"]),
        call=st.builds(
            Call,
            kind=st.sampled_from(["sum", "gather"]),
            dtype=st.sampled_from(sorted(DTYPE_NAMES)),
            shape=st.lists(st.integers(0, 100), max_size=4).map(tuple),
            wire=st.sampled_from(["f32", "bf16", "fp16"]),
            label=st.text(max_size=50),
        ),
    )
)
def test_a_head_survives_a_round_trip(head: PackHead) -> None:
    assert decode_head(encode_head(head)) == head


@pytest.mark.parametrize(
    "changed",
    [
        {"key": [0, 0, 0]},
        {"key": [0, 0, 0, 2**32]},
        {"phase": "both"},
        {"call": ["sum", "object", [2]]},
        {"call": ["sum", "float32", [-1]]},
        {"call": ["sum", "float32", [2**20, 2**20]]},
        {"call": ["sum", "float32", [2**62] * 16]},
        {"call": ["gather", "float32", [2**62, 0]]},
        {"call": ["sum", "float32", [0] * (MAX_DIMENSIONS + 1)]},
        {"call": ["sum", "float32", [2], "f32", "x" * (MAX_LABEL + 1)]},
        {"call": ["maximum", "float32", [2]]},
        {"call": ["sum", "float32", [2], "f32", "", 1]},
    ],
    ids=str,
)
def test_a_head_of_anything_else_is_refused(changed: dict[str, object]) -> None:
    fields = msgspec.structs.asdict(HEAD) | changed
    with pytest.raises(MalformedFrame):
        decode_head(msgspec.msgpack.encode(list(fields.values())))


def test_a_whole_piece_holds_whole_numbers() -> None:
    assert all(PIECE_BYTES % np.dtype(name).itemsize == 0 for name in DTYPE_NAMES)


@pytest.mark.parametrize(("own", "narrowed"), [("float32", True), ("float64", False), ("int32", False)])
def test_only_float32_is_narrowed(own: str, narrowed: bool) -> None:
    call = msgspec.convert(["sum", own, [4], "bf16"], Call)
    assert call.is_narrowed == narrowed


def test_a_callers_label_cannot_break_the_line_that_shows_it() -> None:
    assert str(Call("sum", "int8", (1,), label="a\n\u202eb")).isprintable()
