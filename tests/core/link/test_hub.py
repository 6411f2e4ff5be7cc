"""Links between nodes: each test in memory, and over mutual TLS on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import msgspec
from msgspec.structs import replace

from core.link.dial import Backoff
from core.link.driver import Limits
from core.link.frames import decode, encode, read_body
from core.link.outbox import LIMIT_BYTES
from core.session import frames as words
from core.session.frames import Begin
from core.vocabulary.errors import Problem
from core.vocabulary.events import MemberProgressed
from core.vocabulary.ids import RunId
from core.vocabulary.limits import SILENT_S
from core.vocabulary.peer_messages import BusyTold, Bye, EventTold, Hello, StopAsked, TelemetrySent
from core.vocabulary.progress import Progress
from core.vocabulary.versions import LINK_PROTOCOL
from tests.core.link.conftest import MakeNode
from tests.core.link.examples import large, reading
from tests.core.link.nodes import LIMIT_S, Away, Came, Down, FakeClock, LinkNode, Up


def pair(anna: LinkNode, bert: LinkNode) -> None:
    """Only bert calls: anna does not know bert's address."""
    anna.trust(bert, known=False)
    bert.trust(anna)


async def linked(anna: LinkNode, bert: LinkNode) -> None:
    pair(anna, bert)
    await anna.diary.wait(Up)
    await bert.diary.wait(Up)


async def test_two_paired_nodes_link_and_learn_of_each_other(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    await linked(anna, bert)
    seen_by_anna, seen_by_bert = anna.diary.all(Up)[0], bert.diary.all(Up)[0]
    assert (seen_by_anna.device, seen_by_anna.hello.name) == (bert.device, "bert")
    assert (seen_by_bert.device, seen_by_bert.hello.name) == (anna.device, "anna")
    assert (seen_by_anna.address, seen_by_bert.address) == (bert.address, anna.address)
    assert anna.links.peer_host(bert.device) == anna.links.own_host(bert.device) == "127.0.0.1"
    assert anna.links.linked == (bert.device,)
    assert anna.links.trouble(bert.device) is None


async def test_both_calling_at_once_leaves_one_link_that_works_both_ways(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    anna.trust(bert)
    bert.trust(anna)
    await anna.diary.wait(Up)
    await bert.diary.wait(Up)
    anna.links.send(bert.device, StopAsked(run=RunId("from anna")))
    bert.links.send(anna.device, StopAsked(run=RunId("from bert")))
    assert (await anna.diary.wait(Came)).message == StopAsked(run=RunId("from bert"))
    assert (await bert.diary.wait(Came)).message == StopAsked(run=RunId("from anna"))
    assert not anna.diary.all(Down)
    assert not bert.diary.all(Down)
    assert len(anna.diary.all(Up)) == len(bert.diary.all(Up)) == 1


async def test_a_found_device_is_called_at_once_though_the_pause_is_long(node: MakeNode) -> None:
    anna = await node("anna")
    bert = await node("bert", backoff=Backoff(first_s=3600, most_s=3600))
    anna.trust(bert, known=False)
    bert.trust(anna, known=False)
    await_trouble = asyncio.timeout(LIMIT_S)
    async with await_trouble:
        while bert.links.trouble(anna.device) is None:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
    assert bert.links.trouble(anna.device).code == "no-address"  # type: ignore[union-attr]
    bert.links.found(anna.device, [anna.address])
    await bert.diary.wait(Up)


async def test_a_node_that_starts_again_is_linked_again(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    await linked(anna, bert)
    port = anna.listener.port
    await anna.close()
    down = await bert.diary.wait(Down)
    assert down.problem.what == "Tandem was closed there."
    assert not bert.links.send(anna.device, BusyTold(busy=True))
    assert bert.links.peer_host(anna.device) == ""

    again = LinkNode("anna", anna.identity.key_path.parent.parent)
    try:
        await again.listener.start(port, ["127.0.0.1"])
        again.trust(bert, known=False)
        await bert.diary.wait(Up, 2)
        await again.diary.wait(Up)
    finally:
        await again.close()


async def test_a_dropped_link_tells_the_peer_why_and_comes_back(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    await linked(anna, bert)
    problem = Problem(code="x", what="That was too much.")
    anna.links.drop(bert.device, problem)
    assert (await bert.diary.wait(Down)).problem == problem
    assert (await anna.diary.wait(Down)).problem == problem
    await bert.diary.wait(Up, 2)


async def test_a_forgotten_device_loses_its_link_at_once_and_is_told_to_pair_again(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    await linked(anna, bert)
    anna.listener.trust([])
    anna.links.forget(bert.device)
    assert anna.links.linked == ()
    assert anna.diary.all(Down)
    assert (await bert.diary.wait(Down)).problem.code == "forgotten"
    told = await bert.diary.wait(Down, 2)
    assert told.problem.code == "link-refused"
    assert "pair" in told.problem.fix
    assert len(anna.diary.all(Up)) == len(bert.diary.all(Up)) == 1


async def test_a_device_paired_again_is_linked_at_once_though_the_peer_never_forgot(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    anna.trust(bert)
    bert.trust(anna)
    for again in range(1, 4):
        await anna.diary.wait(Up, again)
        await bert.diary.wait(Up, again)
        anna.links.forget(bert.device)
        anna.links.pair(bert.certificate, name="bert", hints=[bert.address])
    await anna.diary.wait(Up, 4)
    await bert.diary.wait(Up, 4)


async def test_another_device_at_a_known_address_is_not_linked(node: MakeNode) -> None:
    anna, bert, eve = await node("anna"), await node("bert"), await node("eve")
    anna.trust(bert, known=False)
    eve.trust(bert, known=False)
    bert.pins.append(anna.certificate)
    bert.links.pair(anna.certificate, name="anna", hints=[eve.address])
    async with asyncio.timeout(LIMIT_S):
        while bert.links.trouble(anna.device) is None:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
    assert bert.links.trouble(anna.device).code == "wrong-certificate"  # type: ignore[union-attr]
    assert not bert.diary.all(Up)
    assert not eve.diary.all(Up)


async def test_another_protocol_is_named_on_both_sides_and_nothing_else_said(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    anna.versions = {"protocol": 99}
    anna.trust(bert)
    bert.trust(anna)
    assert "99" in (await bert.diary.wait(Down)).problem.what
    assert (await anna.diary.wait(Down)).problem.code == "versions-differ"
    assert not anna.diary.all(Up)
    assert not bert.diary.all(Up)


async def test_a_node_of_the_previous_version_is_told_that_it_is_older_and_ignored(
    node: MakeNode,
) -> None:
    anna, bert = await node("anna", backoff=Backoff(first_s=3600, most_s=3600)), await node("bert")
    anna.trust(bert, known=False)
    bert.versions = {"protocol": LINK_PROTOCOL - 1}
    ping = msgspec.msgpack.encode({"type": "ping"})
    for _ in range(2):
        reader, writer = await bert.call(anna)
        said = replace(bert.hello(), session=b"older-01", number=1)
        writer.write(encode(said) + len(ping).to_bytes(4, "big") + ping)
        async with asyncio.timeout(LIMIT_S):
            answer = decode(await read_body(reader))
            assert await reader.read() == b""
        assert isinstance(answer, Hello) and answer.versions.protocol == LINK_PROTOCOL
        writer.transport.abort()
    down = await anna.diary.wait(Down)
    both = f"{LINK_PROTOCOL} here and {LINK_PROTOCOL - 1} on bert"
    assert down.problem.what == f"Tandem's link protocol is {both}."
    assert not anna.diary.all(Up)


async def test_a_silent_peer_is_noticed_after_ten_seconds(node: MakeNode) -> None:
    """Its connection stays open, but nothing arrives over it."""
    clock = FakeClock()
    anna, bert = await node("anna", clock=clock), await node("bert")
    async with muted(anna, bert):
        clock.advance(SILENT_S - 0.1)
        linked = anna.links.linked
        assert linked == (bert.device,)
        clock.advance(0.2)
        assert anna.links.linked == ()
        away = await anna.diary.wait(Away)
        assert away.problem.code == "link-silent"
        assert "bert" in away.problem.what


class MutePeer:
    """A paired device's manual connection: it begins a session, then reads nothing."""

    def __init__(self, owner: LinkNode) -> None:
        self.owner = owner

    async def call(self, other: LinkNode) -> None:
        self.reader, self.writer = await self.owner.call(other)
        self.writer.write(encode(replace(self.owner.hello(), session=b"mute-run", number=1)))
        answer = decode(await read_body(self.reader))
        assert isinstance(answer, Hello)
        self.writer.write(words.encode(Begin(session=answer.number or 1, message=0, bytes=0)))
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def muted(anna: LinkNode, bert: LinkNode) -> AsyncIterator[MutePeer]:
    """Anna is linked with bert's manual connection."""
    anna.trust(bert, known=False)
    mute = MutePeer(bert)
    await mute.call(anna)
    try:
        await anna.diary.wait(Up)
        yield mute
    finally:
        mute.close()


async def test_a_peer_that_reads_nothing_loses_its_link_before_memory_grows(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    async with muted(anna, bert):
        sent, size = 0, len(encode(large()))
        while anna.links.send(bert.device, large()):
            sent += 1
            await asyncio.sleep(0)
        assert sent * size >= LIMIT_BYTES - size
        assert (await anna.diary.wait(Down)).problem.code == "link-slow"


async def test_a_peer_that_stalls_lets_nobody_wait_for_ever(node: MakeNode) -> None:
    anna, bert = await node("anna", limits=Limits(flush_s=0.2, stall_s=0.2)), await node("bert")
    async with muted(anna, bert):
        assert anna.links.send(bert.device, large())
        assert (await anna.diary.wait(Down)).problem.code == "link-stalled"


async def test_garbage_from_a_paired_device_ends_its_link_and_is_named(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    async with muted(anna, bert) as mute:
        mute.writer.write(b"\xff\xff\xff\xff\xff")
        assert (await anna.diary.wait(Down)).problem.code == "bad-frame"


async def test_a_hello_without_a_session_is_turned_away_with_a_reason(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    anna.trust(bert, known=False)
    reader, writer = await bert.call(anna)
    try:
        writer.write(encode(bert.hello()))
        async with asyncio.timeout(LIMIT_S):
            answer = decode(await read_body(reader))
        assert isinstance(answer, Bye)
        assert answer.problem.code == "link-bad-hello"
    finally:
        writer.transport.abort()
    assert anna.links.linked == ()


async def test_a_newer_connection_takes_the_place_of_a_dead_one(node: MakeNode) -> None:
    """The peer crashed without a goodbye, and its new process calls before its silence is noticed."""
    anna, bert = await node("anna"), await node("bert")
    async with muted(anna, bert):
        bert.trust(anna)
        await bert.diary.wait(Up)
        await anna.diary.wait(Up, 2)
        assert [down.problem.code for down in anna.diary.all(Down)] == ["link-renewed"]
        assert anna.links.linked == (bert.device,)


async def test_a_late_hello_of_a_call_that_was_given_up_replaces_no_connection(node: MakeNode) -> None:
    leader, follower = sorted([await node("anna"), await node("bert")], key=lambda each: each.device)
    pair(leader, follower)
    given_up = follower.links._peers[leader.device]._hello()  # before the call that becomes the link
    await leader.diary.wait(Up)
    await follower.diary.wait(Up)
    link = leader.links._peers[follower.device].link
    assert link is not None
    before = link.number
    reader, writer = await follower.call(leader)
    try:
        writer.write(encode(given_up))
        async with asyncio.timeout(LIMIT_S):
            answer = decode(await read_body(reader))
    finally:
        writer.transport.abort()
    assert isinstance(answer, Bye) and answer.problem.code == "link-crossed"
    assert link.number == before and leader.links._peers[follower.device].link is link


async def test_a_port_where_nobody_answers_is_tried_in_growing_pauses(node: MakeNode) -> None:
    bert, anna = await node("bert"), await node("anna")
    calls: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed_port = free.getsockname()[1]
    bert.links.chance = lambda: calls.append(0.0) or 0.0  # type: ignore[func-returns-value]
    bert.links.pair(anna.certificate, name="anna", hints=[f"127.0.0.1:{closed_port}", "no address at all:x"])
    async with asyncio.timeout(LIMIT_S):
        while len(calls) < 3:  # noqa: ASYNC110  (each call is a turn of the loop)
            await asyncio.sleep(0.005)
    assert bert.links.trouble(anna.device).code in ("nobody-listens", "unreachable")  # type: ignore[union-attr]
    assert not bert.diary.all(Down)


async def test_telemetry_is_sent_to_all_and_a_device_without_link_is_said_so(node: MakeNode) -> None:
    anna, bert, cleo = [await node(name) for name in ("anna", "bert", "cleo")]
    await linked(anna, bert)
    bert.links.send_all(TelemetrySent(reading=reading()))
    assert isinstance((await anna.diary.wait(Came)).message, TelemetrySent)
    assert not bert.links.send(cleo.device, BusyTold(busy=True))
    with contextlib.suppress(KeyError):
        bert.links.forget(cleo.device)


async def test_a_flood_is_left_out_and_named_and_the_link_stays(node: MakeNode) -> None:
    anna, bert = await node("anna"), await node("bert")
    await linked(anna, bert)
    progress = Progress(at_s=1.0, epoch=0, epochs=1, step=1, batch=1)
    step = EventTold(event=MemberProgressed(run=RunId("run"), device=anna.device, progress=progress))
    for _ in range(5_500):
        assert anna.links.send(bert.device, step)
    assert anna.links.send(bert.device, StopAsked(run=RunId("run")))
    await bert.diary.wait_until(lambda: any(isinstance(c.message, StopAsked) for c in bert.diary.all(Came)))
    assert 3_000 <= len(bert.diary.all(Came)) < 5_500
    assert [problem.code for problem in bert.excess] == ["link-excess"]
    assert bert.links.linked == (anna.device,)
