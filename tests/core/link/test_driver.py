"""A link outlives its connections: each message arrives once and in order, however often they break."""

from __future__ import annotations

import asyncio
import random

import pytest

from core.link.dial import Backoff
from core.link.driver import Limits, Link
from core.link.frames import encode
from core.link.outbox import LIMIT_BYTES
from core.link.silence import HEARTBEAT_S
from core.session import frames as words
from core.session.frames import Alive
from core.session.state import SessionLimits
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.limits import SILENT_S
from core.vocabulary.peer_messages import Message, ModulesAsked, StopAsked
from tests.core.link.conftest import MakeNode
from tests.core.link.examples import large
from tests.core.link.nodes import Away, Came, Down, FakeClock, LinkNode, Up
from tests.core.link.test_hub import linked, muted

CUTS = 100
AT_ONCE = Backoff(first_s=0.002, most_s=0.02)
NEVER = Backoff(first_s=3600, most_s=3600)


def stop(number: int) -> StopAsked:
    return StopAsked(run=RunId(f"run {number}"))


def link_of(node: LinkNode, other: LinkNode) -> Link:
    link = node.links._peers[other.device].link
    assert link is not None
    return link


async def cut(node: LinkNode, other: LinkNode) -> None:
    """Breaks the connection as soon as there is one."""
    link = link_of(node, other)
    async with asyncio.timeout(SILENT_S):
        while (connection := link._connection) is None:  # noqa: ASYNC110  (a connection is told to nobody)
            await asyncio.sleep(0)
    connection.abort()


@pytest.mark.parametrize("calls", ["one side", "both sides, often at once"])
async def test_a_hundred_cuts_lose_and_repeat_no_message(node: MakeNode, calls: str) -> None:
    anna, bert = await node("anna", backoff=AT_ONCE), await node("bert", backoff=AT_ONCE)
    if calls == "one side":
        await linked(anna, bert)
    else:
        anna.trust(bert)
        bert.trust(anna)
        await anna.diary.wait(Up)
        await bert.diary.wait(Up)
    chance = random.Random(7)
    sent: dict[str, list[Message]] = {"anna": [], "bert": []}
    connections = {link_of(bert, anna)._connection}
    for number in range(CUTS):
        for _ in range(chance.randrange(4)):
            for here, there in ((anna, bert), (bert, anna)):
                message = large(number) if chance.random() < 0.2 else stop(number)
                async with asyncio.timeout(SILENT_S):
                    while link_of(here, there)._outbox.waiting_bytes > 1 << 20:  # noqa: ASYNC110  (told to nobody)
                        await asyncio.sleep(0)
                assert here.links.send(there.device, message)
                sent[here.name].append(message)
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        await cut(*((anna, bert) if chance.random() < 0.5 else (bert, anna)))
        connections.add(link_of(bert, anna)._connection)
    for here, there in ((anna, bert), (bert, anna)):
        await there.diary.wait(Came, len(sent[here.name]))
        assert [came.message for came in there.diary.all(Came)] == sent[here.name]
        assert len(there.diary.all(Up)) == 1 and not there.diary.all(Down) and not there.diary.all(Away)
    assert len(connections - {None}) > CUTS / 4


async def test_a_silent_peer_is_away_and_messages_sent_meanwhile_arrive_when_it_is_back(
    node: MakeNode,
) -> None:
    clock = FakeClock()
    anna, bert = await node("anna", clock=clock, backoff=NEVER), await node("bert", backoff=NEVER)
    await linked(anna, bert)
    await cut(bert, anna)
    async with asyncio.timeout(SILENT_S):
        while link_of(anna, bert)._connection is not None:  # noqa: ASYNC110  (it is told to nobody)
            await asyncio.sleep(0)
    clock.advance(SILENT_S - HEARTBEAT_S)
    assert anna.links.peer_host(bert.device) and not anna.diary.all(Away)
    clock.advance(HEARTBEAT_S)
    assert [away.problem.code for away in anna.diary.all(Away)] == ["link-closed"]
    assert not anna.links.linked and anna.links.peer_host(bert.device) == ""
    for number in range(3):
        assert anna.links.send(bert.device, stop(number))
    assert not anna.links.send(bert.device, ModulesAsked(question=1, modules=())), "nobody is there to answer"
    bert.links.addresses_changed()
    await anna.diary.wait(Up, 2)
    await bert.diary.wait(Came, 3)
    assert [came.message for came in bert.diary.all(Came)] == [stop(number) for number in range(3)]
    assert anna.links.linked == (bert.device,)
    assert not anna.diary.all(Down) and not bert.diary.all(Away)


async def test_a_laptop_that_itself_slept_does_not_blame_the_other(node: MakeNode) -> None:
    clock = FakeClock()
    anna, bert = await node("anna", clock=clock, backoff=NEVER), await node("bert")
    await linked(anna, bert)
    clock.advance(HEARTBEAT_S)
    clock.sleep(40.0)
    clock.advance(HEARTBEAT_S)
    away = await anna.diary.wait(Away)
    assert away.problem.code == "link-slept"
    assert "This laptop slept or froze for 40 s" in away.problem.what
    assert link_of(anna, bert)._connection is not None, "its silence was this laptop's own"
    bert.links.send(anna.device, stop(1))
    await anna.diary.wait(Up, 2)
    await anna.diary.wait(Came)
    assert not anna.diary.all(Down)


async def test_leaving_a_link_sends_everything_queued_before_the_goodbye(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    await linked(anna, bert)
    goodbye = Problem(code="x", what="That was all.")
    sent: list[Message] = [large(number) if number % 5 == 0 else stop(number) for number in range(50)]
    for message in sent:
        assert anna.links.send(bert.device, message)
    anna.links.drop(bert.device, goodbye)
    assert not anna.links.send(bert.device, stop(1))
    assert (await bert.diary.wait(Down)).problem == goodbye
    assert [came.message for came in bert.diary.all(Came)] == sent


async def test_too_many_queued_bytes_for_an_absent_laptop_end_its_link(node: MakeNode) -> None:
    anna, bert = await node("anna", backoff=NEVER), await node("bert", backoff=NEVER)
    await linked(anna, bert)
    link_of(bert, anna).end(Problem(code="x", what="It crashed."))
    async with asyncio.timeout(SILENT_S):
        while link_of(anna, bert)._connection is not None:  # noqa: ASYNC110  (it is told to nobody)
            await asyncio.sleep(0)
    sent, size = 0, len(encode(large()))
    while anna.links.send(bert.device, large(sent)):
        sent += 1
    assert LIMIT_BYTES - 2 * size < sent * size <= LIMIT_BYTES
    assert [down.problem.code for down in anna.diary.all(Down)] == ["link-slow"]


async def test_a_peer_that_lives_but_confirms_nothing_loses_its_link(node: MakeNode) -> None:
    clock = FakeClock()
    anna, bert = await node("anna", clock=clock), await node("bert")
    async with muted(anna, bert) as mute:
        assert anna.links.send(bert.device, stop(1))
        link = link_of(anna, bert)
        while not anna.diary.all(Down):
            heard_s = link._silence.heard_s
            clock.advance(HEARTBEAT_S)
            mute.writer.write(words.encode(Alive()))
            async with asyncio.timeout(SILENT_S):
                while link._silence.heard_s == heard_s and not anna.diary.all(Down):  # noqa: ASYNC110
                    await asyncio.sleep(0)
        assert anna.diary.all(Down)[0].problem.code == "link-stalled"


async def test_worn_keys_are_renewed_by_a_new_connection_without_a_report(
    node: MakeNode,
) -> None:
    clock, worn = FakeClock(), SessionLimits(silent_s=SILENT_S, worn_bytes=200_000)
    anna, bert = await node("anna", clock=clock, limits=Limits(session=worn)), await node("bert")
    await linked(anna, bert)
    first = link_of(anna, bert)._connection
    assert bert.links.send(anna.device, large(1))
    await anna.diary.wait(Came)
    clock.advance(HEARTBEAT_S)
    assert link_of(anna, bert)._connection is not first
    assert bert.links.send(anna.device, stop(2))
    await anna.diary.wait(Came, 2)
    assert not anna.diary.all(Down) and not bert.diary.all(Down) and not bert.diary.all(Away)
