"""Lines, whatever chunks their bytes arrive in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.runtime.lines import Lines


@given(st.lists(st.binary(max_size=200)), st.integers(1, 50))
def test_bytes_survive_a_round_trip_however_they_are_cut(pieces: list[bytes], most: int) -> None:
    lines = Lines(most_bytes=most)
    out = [line for piece in pieces for line in lines.feed(piece)] + lines.end()
    assert b"".join(out) == b"".join(pieces).replace(b"\n", b"")


def test_a_line_without_an_end_does_not_grow_for_ever() -> None:
    lines = Lines(most_bytes=10)
    assert lines.feed(b"x" * 25) == [b"x" * 10, b"x" * 10]
    assert lines.end() == [b"xxxxx"]
    assert lines.end() == []


@given(
    st.lists(st.binary(max_size=30).filter(lambda piece: b"\n" not in piece), max_size=8), st.integers(1, 7)
)
def test_lines_are_the_same_however_the_bytes_arrive(pieces: list[bytes], size: int) -> None:
    stream = b"".join(piece + b"\n" for piece in pieces) + b"rest"
    lines = Lines()

    cut = [line for at in range(0, len(stream), size) for line in lines.feed(stream[at : at + size])]

    assert cut == pieces
    assert lines.end() == [b"rest"]


def test_a_line_that_is_too_long_is_returned_once_and_the_next_one_follows() -> None:
    lines = Lines(4, skip_rest=True)

    assert lines.feed(b"abcdefg") == [b"abcde"]
    assert lines.feed(b"fghijklmnop") == []
    assert lines.feed(b"q\nab\n") == [b"ab"]
    assert lines.end() == []
