"""A fetch's requests, for any files: all of them, once, in order, and never too much at a time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.project.send import Extent
from core.session.frames import MAX_WORD_BYTES
from core.transfer.machine import WINDOW, FetchMachine, Patience, Unasked
from core.transfer.words import BLOCK_BYTES, MOST_EXTENTS, Ask

WANTED = st.lists(
    st.tuples(st.integers(0, 2 * BLOCK_BYTES), st.integers(0, 2 * BLOCK_BYTES + 7)), max_size=20
).map(lambda sizes: [(number, min(sizes_), max(sizes_)) for number, sizes_ in enumerate(sizes)])


@given(WANTED)
def test_every_missing_byte_is_asked_for_once_and_in_order(wanted: list[tuple[int, int, int]]) -> None:
    machine, have = FetchMachine(wanted), {file: at for file, at, _ in wanted}
    asked: list[tuple[int, int]] = []
    number = 0
    while not machine.is_done:
        while extents := machine.ask(number):
            size = sum(extent.length for extent in extents)
            assert 0 < size <= BLOCK_BYTES and len(extents) <= MOST_EXTENTS
            asked.append((number, size))
            number += 1
        assert 0 < len(asked) <= WINDOW
        first, size = asked.pop(0)
        for extent, part in machine.came(first, memoryview(bytes(size))):
            assert (have[extent.file], len(part)) == (extent.offset, extent.length)
            have[extent.file] += extent.length
    assert have == {file: max(at, size) for file, at, size in wanted}


def test_many_small_files_come_together() -> None:
    machine = FetchMachine((number, 0, 10) for number in range(1_000))
    assert [len(machine.ask(number)) for number in range(5)] == [MOST_EXTENTS] * 3 + [
        1_000 - 3 * MOST_EXTENTS,
        0,
    ]


def test_the_longest_question_fits_into_a_word() -> None:
    extents = tuple(Extent(2**31 - 1, 2**62 - 1, BLOCK_BYTES) for _ in range(MOST_EXTENTS))
    assert len(msgspec.msgpack.encode(Ask(2**63 - 1, "f" * 64, extents))) < MAX_WORD_BYTES - 64


@pytest.mark.parametrize(("number", "size"), [(1, 10), (0, 9), (0, 11), (2, 10)])
def test_unrequested_blocks_are_refused(number: int, size: int) -> None:
    machine = FetchMachine([(0, 0, 10)])
    machine.ask(0)
    with pytest.raises(Unasked):
        list(machine.came(number, memoryview(bytes(size))))


@pytest.mark.parametrize(
    ("waited_s", "size", "holds"),
    [
        (59.0, 1, False),  # trickles
        (1.0, 100, False),
        (40.0, BLOCK_BYTES, True),  # a slow network
        (0.01, 1, False),  # 100 bytes a second, for as long as that takes
        (0.001, 256, True),  # small files
    ],
)
def test_a_peer_that_sends_a_little_forever_is_given_up(waited_s: float, size: int, holds: bool) -> None:
    patience = Patience()
    assert all(patience.holds(waited_s, size) for _ in range(13_000)) is holds


def test_a_laptop_that_was_away_is_not_slow() -> None:
    assert Patience().holds(600.0, BLOCK_BYTES)
