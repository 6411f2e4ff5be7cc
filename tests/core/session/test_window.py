"""The send window: however often a connection breaks, each byte of each message is sent in order."""

from __future__ import annotations

import pytest

from core.session.frames import PIECE_BYTES
from core.session.state import Message, NotSent
from core.session.window import MESSAGE_BYTES, SendWindow


def message(size: int, *key: int) -> Message:
    return Message(b"", size, lambda begin, end: bytes(end - begin), key)


def sent(window: SendWindow) -> list[tuple[int | None, int, int]]:
    """Everything to send: the number, if a head precedes it, and its start and end."""
    found = []
    while piece := window.next():
        assert len(piece.data) == piece.end - piece.begin
        found.append((piece.number if piece.needs_head else None, piece.begin, piece.end))
    return found


def test_messages_go_in_pieces_with_one_head_each() -> None:
    window = SendWindow()
    window.put(message(2 * PIECE_BYTES + 1))
    window.put(message(0))
    assert sent(window) == [
        (0, 0, PIECE_BYTES),
        (None, PIECE_BYTES, 2 * PIECE_BYTES),
        (None, 2 * PIECE_BYTES, 2 * PIECE_BYTES + 1),
        (1, 0, 0),
    ]


def test_a_message_continues_where_the_peer_needs_it() -> None:
    window = SendWindow()
    window.put(message(2 * PIECE_BYTES + 1))
    sent(window)
    window.resume(0, PIECE_BYTES)
    assert sent(window) == [(0, PIECE_BYTES, 2 * PIECE_BYTES), (None, 2 * PIECE_BYTES, 2 * PIECE_BYTES + 1)]
    window.resume(1, 0)
    assert sent(window) == []
    assert len(window) == 0


def test_only_messages_not_yet_begun_are_dropped() -> None:
    window = SendWindow()
    for number in range(3):
        window.put(message(1, number, 5))
    window.next()
    window.drop((2,))
    assert sent(window) == [(1, 0, 1)]
    window.resume(0, 0)
    assert sent(window) == [(0, 0, 1), (1, 0, 1)]


@pytest.mark.parametrize(
    ("number", "offset"),
    [(0, 0), (3, 0), (1, 5), (1, 2 * PIECE_BYTES), (2, PIECE_BYTES)],
    ids=["confirmed long ago", "never sent", "within a piece", "past its end", "of nothing"],
)
def test_a_peer_that_requests_what_it_was_not_sent_is_detected(number: int, offset: int) -> None:
    window = SendWindow()
    window.put(message(1))
    window.put(message(2 * PIECE_BYTES))
    sent(window)
    window.confirm(1)
    with pytest.raises(NotSent):
        window.resume(number, offset)


def test_nothing_unsent_can_be_confirmed() -> None:
    window = SendWindow()
    window.put(message(1))
    with pytest.raises(NotSent):
        window.confirm(1)


def test_the_size_of_messages_is_counted_until_they_are_confirmed() -> None:
    window = SendWindow()
    for number in range(3):
        window.put(message(PIECE_BYTES, number))
    one = PIECE_BYTES + MESSAGE_BYTES
    assert window.held_bytes == 3 * one
    window.next()
    window.drop((2,))
    assert window.held_bytes == 2 * one
    window.confirm(1)
    assert window.held_bytes == one
