"""The one port, on loopback: who comes in where, and what strangers get."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from core.home.identity import load_or_create
from core.link.frames import encode
from core.net import strangers
from core.net.address import parse
from core.net.strangers import Guest
from core.net.tls import client_context, connect
from core.node import listener
from core.node.listener import LISTEN_LIMITS, ListenLimits
from core.pairing import state as pairing_state
from core.pairing.driver import PairingDriver
from core.vocabulary.events import PairingCodeShown, PairingEnded
from core.vocabulary.peer_messages import MAX_FRAME_BYTES, BusyTold
from tests.core.link.examples import hello
from tests.core.link.nodes import LIMIT_S, Down, LinkNode, Up

pytestmark = pytest.mark.real

Stranger = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Call = Callable[[], Awaitable[Stranger]]


@pytest.fixture
def limits() -> ListenLimits:
    return LISTEN_LIMITS


@pytest.fixture
async def anna(tmp_path: Path, limits: ListenLimits) -> AsyncIterator[LinkNode]:
    node = await LinkNode("anna", tmp_path, listen_limits=limits).start()
    yield node
    await node.close()


@pytest.fixture
async def bert(tmp_path: Path) -> AsyncIterator[LinkNode]:
    node = await LinkNode("bert", tmp_path).start()
    yield node
    await node.close()


@pytest.fixture
async def call(anna: LinkNode) -> AsyncIterator[Call]:
    """Plain connections to anna."""
    writers: list[asyncio.StreamWriter] = []

    async def call() -> Stranger:
        reader, writer = await asyncio.open_connection("127.0.0.1", anna.listener.port)
        writers.append(writer)
        return reader, writer

    yield call
    for writer in writers:
        writer.transport.abort()


async def closed(reader: asyncio.StreamReader) -> bool:
    """The other side closed it silently."""
    async with asyncio.timeout(LIMIT_S):
        try:
            return await reader.read(1) == b""
        except OSError:
            return True


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_comes_while_it_closes_is_closed_too(tmp_path: Path, turns: int) -> None:
    """``turns`` of the loop lie between the two: accepted, handed to a task, waiting for its first byte."""
    node = await LinkNode("anna", tmp_path).start()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        with socket.create_connection(("127.0.0.1", node.listener.port), LIMIT_S) as caller:
            for _ in range(turns):
                await asyncio.sleep(0)
            await node.close()
            assert await asyncio.to_thread(_is_closed, caller)
        gc.collect()
    assert [str(each.message) for each in told] == []


def _is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


async def refused(anna: LinkNode, why: str) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not anna.listener.refusals.by_reason[why]:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)


async def test_a_pairing_frame_goes_to_pairing_with_its_first_byte_unread(anna: LinkNode, call: Call) -> None:
    _, writer = await call()
    frame = struct.pack(">I", 5) + b"hello"
    writer.write(frame)
    sock = await anna.diary.wait(socket.socket)
    sock.setblocking(True)
    sock.settimeout(LIMIT_S)
    assert sock.recv(9, socket.MSG_WAITALL) == frame


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x02", b"SSH-2.0-OpenSSH_9.6\r\n", b"\xff" * 70_000]
)
async def test_anything_else_is_closed_and_counted(anna: LinkNode, call: Call, garbage: bytes) -> None:
    reader, writer = await call()
    writer.write(garbage)
    assert await closed(reader)
    assert anna.listener.refusals.by_reason["neither TLS nor pairing"] == 1
    assert anna.listener.strangers.present == 0


async def test_files_are_handed_on_unread_with_their_place_among_strangers(
    anna: LinkNode, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: asyncio.Future[tuple[socket.socket, Guest]] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(anna.listener, "_on_files", lambda sock, guest: came.set_result((sock, guest)))
    _, writer = await call()
    writer.write(b"\x01\x16rest")
    async with asyncio.timeout(LIMIT_S):
        sock, guest = await came
    with sock:
        sock.settimeout(LIMIT_S)
        assert sock.recv(6, socket.MSG_WAITALL) == b"\x01\x16rest"
    assert anna.listener.strangers.present == 1
    guest.leave()
    assert anna.listener.strangers.present == 0


async def test_garbage_that_begins_like_tls_is_closed_and_counted(anna: LinkNode, call: Call) -> None:
    reader, writer = await call()
    writer.write(b"\x16\x03\x01\x02\x00" + b"\x5a" * 5000)
    async with asyncio.timeout(LIMIT_S):
        await reader.read()  # an alert, then the end
    await refused(anna, "wrong-certificate")


def test_the_first_byte_stays_in_place_where_the_loop_waits_only_by_consuming() -> None:
    class Taking(asyncio.SelectorEventLoop):
        def add_reader(self, *_: object) -> None:
            raise NotImplementedError

    one, two = socket.socketpair()
    with one, two, asyncio.Runner(loop_factory=Taking) as runner:
        two.send(b"\x16rest")
        assert runner.run(listener._peek(one, LIMIT_S)) == 0x16
        assert one.recv(100) == b"\x16rest"
        with pytest.raises(TimeoutError):
            runner.run(listener._peek(one, 0.01))


@pytest.mark.parametrize("limits", [ListenLimits(first_byte_s=0.05)])
async def test_a_connection_that_sends_nothing_is_closed(anna: LinkNode, call: Call) -> None:
    reader, _ = await call()
    assert await closed(reader)
    assert anna.listener.refusals.by_reason["broken off"] == 1


async def test_a_connection_that_closes_at_once_leaves_no_trace_but_a_count(
    anna: LinkNode, call: Call
) -> None:
    _, writer = await call()
    writer.write_eof()
    await refused(anna, "nothing was said")
    assert anna.listener.strangers.present == 0


async def test_few_strangers_are_admitted_at_once_and_places_come_free(
    anna: LinkNode, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = [await call() for _ in range(strangers.PER_ADDRESS)]
    reader, _ = await call()
    assert await closed(reader)
    assert anna.listener.refusals.by_reason["too many strangers at once"] == 1
    for _, writer in quiet:
        writer.transport.abort()
    async with asyncio.timeout(LIMIT_S):
        while anna.listener.strangers.present:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
    _, writer = await call()
    writer.write(bytes(4))
    assert await anna.diary.wait(socket.socket)


async def test_a_paired_laptop_comes_in_while_strangers_hold_every_place(
    anna: LinkNode, bert: LinkNode
) -> None:
    anna.trust(bert, known=False)
    quiet = []
    for number in range(strangers.AT_ONCE):
        source = f"127.0.0.{2 + number % 5}"
        quiet.append(await asyncio.open_connection("127.0.0.1", anna.listener.port, local_addr=(source, 0)))
    async with asyncio.timeout(LIMIT_S):
        while anna.listener.strangers.present < strangers.AT_ONCE:  # noqa: ASYNC110
            await asyncio.sleep(0)
    bert.trust(anna)
    await refused(anna, "too many strangers at once")
    assert anna.links.linked == (), "without a place of its own it is kept out"
    anna.listener.strangers.keep_places({"127.0.0.1"})
    await bert.diary.wait(Up)
    assert anna.listener.strangers.present >= strangers.AT_ONCE
    for _, writer in quiet:
        writer.transport.abort()


async def test_a_device_that_is_not_paired_is_refused(anna: LinkNode, tmp_path: Path) -> None:
    eve = load_or_create(tmp_path / "eve")
    reader, writer = await connect(
        "127.0.0.1", anna.listener.port, client_context(eve, anna.certificate), anna.certificate
    )
    writer.write(encode(hello("eve")))
    assert await closed(reader)
    await refused(anna, "wrong-certificate")
    writer.transport.abort()
    assert anna.links.linked == ()


async def say(bert: LinkNode, anna: LinkNode, data: bytes) -> Stranger:
    """Over mutual TLS, as bert."""
    context = client_context(bert.identity, anna.certificate)
    reader, writer = await connect("127.0.0.1", anna.listener.port, context, anna.certificate)
    writer.write(data)
    return reader, writer


@pytest.mark.parametrize(
    "first",
    [
        struct.pack(">I", MAX_FRAME_BYTES),
        struct.pack(">I", 2**32 - 1) + bytes(100_000),
        struct.pack(">I", 3) + b"\xc1\xc1\xc1",
        encode(BusyTold(busy=True)),
        struct.pack(">I", 10) + b'{"v":1}   ',
    ],
    ids=["large", "huge", "garbage", "no hello", "a proof that nobody waits for"],
)
async def test_a_paired_device_whose_first_frame_is_no_hello_is_closed(
    anna: LinkNode, bert: LinkNode, first: bytes
) -> None:
    anna.listener.trust([bert.certificate])
    reader, writer = await say(bert, anna, first)
    assert await closed(reader)
    writer.transport.abort()
    assert anna.listener.refusals.total == 1
    assert not anna.proofs


@pytest.mark.parametrize("limits", [ListenLimits(first_frame_s=0.05)])
async def test_a_paired_device_that_sends_nothing_is_closed(anna: LinkNode, bert: LinkNode) -> None:
    anna.listener.trust([bert.certificate])
    reader, writer = await say(bert, anna, b"\0\0")
    assert await closed(reader)
    writer.transport.abort()


@pytest.mark.parametrize("limits", [ListenLimits(pending_s=0.05)])
async def test_a_pending_device_may_only_prove_its_pairing(anna: LinkNode, bert: LinkNode) -> None:
    anna.listener.trust([], pending=bert.certificate)
    frame = struct.pack(">I", 7) + b'{"v":1}'
    _, writer = await say(bert, anna, frame)
    await anna.diary.wait(str)
    writer.transport.abort()
    assert anna.proofs == [frame]

    reader, writer = await say(bert, anna, encode(hello("bert")))
    assert await closed(reader)
    writer.transport.abort()
    assert anna.listener.refusals.by_reason["not paired"] == 1
    assert anna.links.linked == ()


async def test_a_device_that_stored_the_pairing_sooner_waits_for_this_one(
    anna: LinkNode, bert: LinkNode
) -> None:
    anna.listener.trust([], pending=bert.certificate)
    bert.trust(anna)
    async with asyncio.timeout(LIMIT_S):
        while not anna.listener.strangers.present:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
    anna.trust(bert, known=False)
    await bert.diary.wait(Up)
    await anna.diary.wait(Up)


async def test_a_device_paired_or_forgotten_while_the_node_runs_is_let_in_or_refused(
    anna: LinkNode, bert: LinkNode
) -> None:
    bert.trust(anna)
    await refused(anna, "wrong-certificate")
    anna.trust(bert, known=False)
    await bert.diary.wait(Up)
    anna.listener.trust([])
    anna.links.forget(bert.device)
    before = anna.listener.refusals.by_reason["wrong-certificate"]
    await bert.diary.wait_until(lambda: not bert.links.linked)
    async with asyncio.timeout(LIMIT_S):
        while anna.listener.refusals.by_reason["wrong-certificate"] == before:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert anna.links.linked == ()


def with_pairing(node: LinkNode) -> PairingDriver:
    """Combines the parts like a node."""

    def on_event(event: pairing_state.Event) -> None:
        if isinstance(event, pairing_state.Paired):
            node.pins.append(event.cert)
            node.links.pair(event.cert, name=event.name, hints=[str(event.address)])
            trust()
        node.diary.add(event)

    def trust() -> None:
        node.listener.trust(node.pins, pending=pairing.held())

    pairing = PairingDriver(
        node.identity,
        node.name,
        lambda: node.listener.port,
        on_event=on_event,
        on_held=trust,
        strangers=node.listener.strangers,
    )
    node.listener._on_pairing = pairing.accept_plain
    node.listener._on_proof = pairing.accept_proof
    return pairing


async def test_pairing_and_its_proof_go_through_the_port_and_a_link_follows(
    anna: LinkNode, bert: LinkNode
) -> None:
    pairings = [with_pairing(anna), with_pairing(bert)]
    try:
        pairings[0].start(parse(bert.address))
        codes = [await node.diary.wait(PairingCodeShown) for node in (anna, bert)]
        assert codes[0].code == codes[1].code
        for pairing in pairings:
            pairing.answer(True)
        for node in (anna, bert):
            await node.diary.wait(Up)
            assert not node.diary.all(PairingEnded)
            assert not node.diary.all(Down)
        assert anna.links.linked == (bert.device,)
        assert bert.links.linked == (anna.device,)
    finally:
        for pairing in pairings:
            await pairing.close()


async def test_closing_ends_connections_that_were_not_handed_on(anna: LinkNode, call: Call) -> None:
    reader, _ = await call()
    async with asyncio.timeout(LIMIT_S):
        while not anna.listener.strangers.present:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
    await anna.listener.close()
    assert await closed(reader)
    with pytest.raises(OSError):
        await call()
