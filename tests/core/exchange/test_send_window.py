"""The send window: however often a connection breaks, each byte of each message arrives once, in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.exchange.frames import PIECE_BYTES
from core.exchange.pack import Payload
from core.exchange.send_window import Message, NotSent, SendWindow
from core.exchange.state import Call, Key


def message(number: int, size: int, generation: int = 0) -> Message:
    data = np.full(size, number % 251, np.uint8)
    call = Call("gather", "uint8", (size,))
    return Message(
        Key(generation, 0, 0, number), "part", call, Payload(size, lambda begin, end: data[begin:end])
    )


def sent(window: SendWindow) -> list[tuple[int | None, int, int]]:
    """Everything that is to be sent: the number in the head, from where, to where."""
    found = []
    while piece := window.next():
        found.append((piece.head.message if piece.head else None, piece.begin, piece.end))
    return found


class Receiver:
    """Counts as an inbox does. ``arrived``: sizes and numbers of the whole messages."""

    def __init__(self) -> None:
        self.expected, self.received = 0, 0
        self.arrived: list[tuple[int, int]] = []

    def receive(self, window: SendWindow) -> bool:
        piece = window.next()
        if piece is None:
            return False
        if piece.head:
            assert (piece.head.message, piece.head.offset) == (self.expected, self.received)
        assert piece.begin == self.received
        data = piece.payload.piece(piece.begin, piece.end)
        assert (data == self.expected % 251).all()
        self.received = piece.end
        if piece.end == piece.payload.size:
            self.arrived.append((self.expected, piece.end))
            self.expected, self.received = self.expected + 1, 0
        return True


@given(
    sizes=st.lists(st.sampled_from([0, 1, PIECE_BYTES, 2 * PIECE_BYTES, 2 * PIECE_BYTES + 5]), max_size=6),
    acts=st.lists(st.sampled_from(["piece", "lose", "break", "confirm", "put"]), max_size=60),
)
def test_each_byte_arrives_once_however_often_the_connection_breaks(
    sizes: list[int], acts: list[str]
) -> None:
    window, receiver = SendWindow(), Receiver()
    waiting = [message(number, size) for number, size in enumerate(sizes)]
    is_lost = False
    for act in [*acts, *(["put"] * len(sizes)), "break"]:
        match act:
            case "put" if waiting:
                window.put(waiting.pop(0))
            case "piece" if not is_lost:
                receiver.receive(window)
            case "lose":
                is_lost = window.next() is not None or is_lost  # it was sent, and never came
            case "confirm":
                window.confirm(receiver.expected)
            case "break":
                window.resume(receiver.expected, receiver.received)
                is_lost = False
    while receiver.receive(window):
        pass
    assert receiver.arrived == list(enumerate(sizes))
    window.confirm(len(sizes))
    assert len(window) == 0


def test_messages_go_in_pieces_with_one_head_each() -> None:
    window = SendWindow()
    window.put(message(0, 2 * PIECE_BYTES + 1))
    window.put(message(1, 0))
    assert sent(window) == [
        (0, 0, PIECE_BYTES),
        (None, PIECE_BYTES, 2 * PIECE_BYTES),
        (None, 2 * PIECE_BYTES, 2 * PIECE_BYTES + 1),
        (1, 0, 0),
    ]


def test_only_what_was_not_begun_is_dropped() -> None:
    window = SendWindow()
    for number in range(3):
        window.put(message(number, 1, generation=number))
    window.next()
    window.drop(lambda key: key.generation < 2)
    assert sent(window) == [(1, 0, 1)]
    window.resume(0, 0)
    assert sent(window) == [(0, 0, 1), (1, 0, 1)]


@pytest.mark.parametrize(
    ("number", "offset"),
    [(0, 0), (3, 0), (1, 5), (1, 2 * PIECE_BYTES), (2, PIECE_BYTES)],
    ids=["confirmed long ago", "never sent", "within a piece", "past its end", "of nothing"],
)
def test_a_peer_that_asks_for_what_it_was_not_sent_is_found(number: int, offset: int) -> None:
    window = SendWindow()
    window.put(message(0, 1))
    window.put(message(1, 2 * PIECE_BYTES))
    sent(window)
    window.confirm(1)
    with pytest.raises(NotSent):
        window.resume(number, offset)


def test_nothing_unsent_can_be_confirmed() -> None:
    window = SendWindow()
    window.put(message(0, 1))
    with pytest.raises(NotSent):
        window.confirm(1)
