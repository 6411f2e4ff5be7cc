"""The queue of one link: in order, bounded, telemetry in its newest form."""

from __future__ import annotations

from core.link.frames import body
from core.link.outbox import AWAY_BYTES, LIMIT_BYTES, Outbox
from core.vocabulary.events import MemberLogged, MemberProgressed
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import (
    BusyTold,
    EventTold,
    Message,
    StatusTold,
    StopAsked,
    TelemetrySent,
)
from core.vocabulary.progress import LogLines, Progress
from tests.core.link.examples import large, reading

PING = BusyTold(busy=True)


def taken(outbox: Outbox) -> list[bytes]:
    frames = []
    while (frame := outbox.pop()) is not None:
        frames.append(frame)
    return frames


def test_messages_go_out_in_order() -> None:
    outbox = Outbox()
    messages: list[Message] = [PING, StopAsked(run=RunId("r")), PING, large()]
    assert all(outbox.put(message) for message in messages)
    assert taken(outbox) == [body(message) for message in messages]
    assert outbox.waiting_bytes == 0


def test_only_the_newest_telemetry_waits() -> None:
    outbox = Outbox()
    old, new = (TelemetrySent(reading=reading(at_s)) for at_s in (1.0, 2.0))
    for message in (old, PING, new):
        outbox.put(message)
    assert outbox.waiting_bytes == len(body(new)) + len(body(PING))
    assert taken(outbox) == [body(PING), body(new)]
    assert outbox.waiting_bytes == 0

    for message in (old, new):
        outbox.put(message)
        assert taken(outbox) == [body(message)]


def test_more_than_the_limit_is_not_taken() -> None:
    outbox = Outbox()
    count = 0
    while outbox.put(large()):
        count += 1
    assert LIMIT_BYTES - len(body(large())) < outbox.waiting_bytes <= LIMIT_BYTES
    assert len(taken(outbox)) == count


def step(number: int) -> EventTold:
    progress = Progress(at_s=1.0, epoch=0, epochs=1, step=number, batch=number)
    return EventTold(event=MemberProgressed(run=RunId("r"), device=DeviceId("d"), progress=progress))


def output(size: int) -> EventTold:
    lines = LogLines(task="worker:0", stream="stdout", text="x" * size)
    return EventTold(event=MemberLogged(run=RunId("r"), device=DeviceId("d"), lines=lines))


def test_a_newer_step_takes_the_place_of_an_older_one_while_there_is_no_connection() -> None:
    cases: list[tuple[bool, list[Message]]] = [(False, [step(1), PING, step(2)]), (True, [PING, step(2)])]
    for is_away, expected in cases:
        outbox = Outbox()
        for message in (step(1), PING, step(2)):
            outbox.put(message, is_away=is_away)
        assert taken(outbox) == [body(message) for message in expected]
        assert outbox.waiting_bytes == 0


def test_the_newest_status_of_a_waiting_trainer_counts_after_a_lost_connection() -> None:
    outbox = Outbox()
    first, other, last = (StatusTold(run=RunId("r"), task=task) for task in ("a", "b", "a"))
    for message in (first, other, last):
        outbox.put(message, is_away=True)
    assert taken(outbox) == [body(other), body(last)]


def test_the_oldest_output_is_dropped_first_while_a_laptop_is_away() -> None:
    outbox = Outbox()
    outbox.put(PING, is_away=True)
    for number in range(10 * LIMIT_BYTES // 20_000):
        assert outbox.put(output(20_000 + number), is_away=True)
    assert outbox.waiting_bytes <= AWAY_BYTES
    kept = taken(outbox)
    assert kept[0] == body(PING) and kept[-1] == body(output(20_000 + number))
    assert len(kept) > AWAY_BYTES // 40_000
