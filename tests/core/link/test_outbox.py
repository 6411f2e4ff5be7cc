"""The queue of one link: in order, bounded, telemetry in its newest form."""

from __future__ import annotations

from core.link.frames import encode
from core.link.outbox import FLOW_BYTES, LIMIT_BYTES, Outbox
from core.project.receipt import PIECE_BYTES
from core.vocabulary.ids import ProjectId, RunId
from core.vocabulary.peer_messages import Chunk, Message, Ping, StopAsked, TelemetrySent
from tests.core.link.examples import reading


def chunk(offset: int = 0) -> Chunk:
    return Chunk(run=RunId("r"), project=ProjectId("p"), file=0, offset=offset, data=bytes(PIECE_BYTES))


def taken(outbox: Outbox) -> list[bytes]:
    frames = []
    while (frame := outbox.take()) is not None:
        frames.append(frame)
    return frames


def test_messages_go_out_in_order() -> None:
    outbox = Outbox()
    messages: list[Message] = [Ping(), StopAsked(run=RunId("r")), Ping(), chunk()]
    assert all(outbox.put(message) for message in messages)
    assert taken(outbox) == [encode(message) for message in messages]
    assert outbox.waiting_bytes == 0


def test_only_the_newest_telemetry_waits_and_keeps_its_place() -> None:
    outbox = Outbox()
    old, new = (TelemetrySent(reading=reading(at_s), busy=False) for at_s in (1.0, 2.0))
    for message in (old, Ping(), new):
        outbox.put(message)
    assert outbox.waiting_bytes == len(encode(new)) + len(encode(Ping()))
    assert taken(outbox) == [encode(new), encode(Ping())]
    assert outbox.waiting_bytes == 0

    for message in (old, new):
        outbox.put(message)
        assert taken(outbox) == [encode(message)]


def test_more_than_the_limit_is_not_taken() -> None:
    outbox = Outbox()
    count = 0
    while outbox.put(chunk(count)):
        count += 1
    assert LIMIT_BYTES - PIECE_BYTES - 1000 < outbox.waiting_bytes <= LIMIT_BYTES
    assert len(taken(outbox)) == count


def test_there_is_room_for_what_can_wait_until_a_megabyte_waits() -> None:
    outbox = Outbox()
    while outbox.flows:
        outbox.put(chunk())
    assert FLOW_BYTES <= outbox.waiting_bytes < FLOW_BYTES + PIECE_BYTES + 1000
    outbox.take()
    assert outbox.flows
