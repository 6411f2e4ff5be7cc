"""The loopback: a node's own messages arrive like a peer's, later and in order."""

from __future__ import annotations

import asyncio

from core.run.context import Loopback
from core.vocabulary import peer_messages as ms
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message
from tests.core.cluster.laptops import ANNA, BEN

FIRST, SECOND = ms.StopAsked(run=RunId("r")), ms.OutputsReceived(run=RunId("r"))


class Wire:
    """Links to peers; only Ben is reachable."""

    def __init__(self) -> None:
        self.sent: list[tuple[DeviceId, Message]] = []

    def send(self, device: DeviceId, message: Message) -> bool:
        self.sent.append((device, message))
        return device == BEN


def no_crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


async def test_messages_to_oneself_arrive_on_the_next_turn_and_in_order() -> None:
    heard: list[tuple[DeviceId, Message]] = []
    wire = Wire()
    links = Loopback(ANNA, wire.send, lambda device, message: heard.append((device, message)), no_crash)
    assert links.send(ANNA, FIRST) and links.send(ANNA, SECOND)
    assert heard == []
    await asyncio.sleep(0)
    assert heard == [(ANNA, FIRST), (ANNA, SECOND)]
    assert not wire.sent


async def test_messages_to_others_take_their_links() -> None:
    wire = Wire()
    links = Loopback(ANNA, wire.send, lambda device, message: None, no_crash)
    assert links.send(BEN, FIRST)
    assert not links.send(DeviceId("nobody"), FIRST)
    assert [device for device, _ in wire.sent] == [BEN, DeviceId("nobody")]


async def test_a_message_whose_receiver_fails_is_reported_and_the_next_one_arrives() -> None:
    heard: list[Message] = []
    crashes: list[tuple[str, str]] = []

    def deliver(device: DeviceId, message: Message) -> None:
        heard.append(message)
        if message is FIRST:
            raise ZeroDivisionError("broke")

    links = Loopback(ANNA, Wire().send, deliver, lambda name, error: crashes.append((name, str(error))))
    assert links.send(ANNA, FIRST) and links.send(ANNA, SECOND)
    await asyncio.sleep(0)
    assert crashes == [("a run's StopAsked", "broke")]
    assert heard == [FIRST, SECOND]
