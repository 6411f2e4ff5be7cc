"""Real TLS on loopback: pinned devices get in, nobody else does."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.home.certificate import build
from core.home.identity import Identity, load_or_create
from core.net.tls import (
    HANDSHAKE_S,
    NOBODY_LISTENS,
    Streams,
    accept,
    client_context,
    connect,
    peer_der,
    server_context,
)
from core.vocabulary.errors import TandemError
from tests.core.certificates import device_key, identity_of, odd_certificate

pytestmark = pytest.mark.real


@pytest.fixture
def device(tmp_path: Path) -> Callable[[str], Identity]:
    return lambda name: load_or_create(tmp_path / name)


class Server:
    """Accepts with real TLS; records each connection's outcome."""

    def __init__(self, identity: Identity, pins: Collection[bytes], handshake_s: float) -> None:
        self.identity, self.pins = identity, list(pins)
        self.outcomes: asyncio.Queue[Streams | TandemError] = asyncio.Queue()
        self.port = 0
        self.handshake_s = handshake_s

    async def take(self, sock: socket.socket) -> None:
        context = server_context(self.identity, self.pins)
        try:
            streams = await accept(sock, context, self.pins, handshake_s=self.handshake_s)
            await self.outcomes.put(streams)
        except TandemError as error:
            await self.outcomes.put(error)

    async def outcome(self) -> Streams | TandemError:
        async with asyncio.timeout(60):
            return await self.outcomes.get()

    async def streams(self) -> Streams:
        outcome = await self.outcome()
        assert not isinstance(outcome, TandemError), outcome
        return outcome


@asynccontextmanager
async def serving(
    identity: Identity, pins: Collection[bytes], *, handshake_s: float = HANDSHAKE_S
) -> AsyncIterator[Server]:
    server = Server(identity, pins, handshake_s)
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        server.port = listener.getsockname()[1]

        async def listen() -> None:
            while True:
                sock, _ = await loop.sock_accept(listener)
                sock.setblocking(False)
                tasks.append(asyncio.create_task(server.take(sock)))

        tasks = [asyncio.create_task(listen())]
        try:
            yield server
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            while not server.outcomes.empty():
                outcome = server.outcomes.get_nowait()
                if not isinstance(outcome, TandemError):
                    outcome[1].transport.abort()
            await asyncio.sleep(0)


async def reach(server: Server, identity: Identity, pin: bytes) -> Streams:
    return await connect("127.0.0.1", server.port, client_context(identity, pin), pin)


async def test_two_devices_that_pinned_each_other_meet_over_tls_1_3(
    device: Callable[[str], Identity],
) -> None:
    anna, bert = device("anna"), device("bert")
    async with serving(anna, [bert.cert_der]) as server:
        reader, writer = await reach(server, bert, anna.cert_der)
        far_reader, far_writer = await server.streams()

        assert peer_der(writer) == anna.cert_der
        assert peer_der(far_writer) == bert.cert_der
        assert far_writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.write(b"hello")
        assert await far_reader.readexactly(5) == b"hello"
        far_writer.write(b"and back")
        assert await reader.readexactly(8) == b"and back"
        for end in (writer, far_writer):
            end.transport.abort()


async def test_each_of_thirty_pins_is_accepted(device: Callable[[str], Identity], tmp_path: Path) -> None:
    anna = device("anna")
    peers = [identity_of(device_key(n), build(device_key(n)), tmp_path / f"peer{n}") for n in range(1, 31)]
    async with serving(anna, [peer.cert_der for peer in peers]) as server:
        for peer in peers:
            _, writer = await reach(server, peer, anna.cert_der)
            _, far_writer = await server.streams()
            assert peer_der(far_writer) == peer.cert_der
            for end in (writer, far_writer):
                end.transport.abort()


async def test_invariant_a_device_without_a_pin_is_refused(device: Callable[[str], Identity]) -> None:
    anna, bert, eve = device("anna"), device("bert"), device("eve")
    for pins in ([bert.cert_der], []):
        async with serving(anna, pins) as server:
            # A TLS 1.3 client believes it is connected until it reads.
            reader, writer = await reach(server, eve, anna.cert_der)
            outcome = await server.outcome()
            assert isinstance(outcome, TandemError)
            assert outcome.code == "wrong-certificate"
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.transport.abort()


async def test_invariant_a_server_with_another_key_is_refused(device: Callable[[str], Identity]) -> None:
    anna, bert, eve = device("anna"), device("bert"), device("eve")
    async with serving(eve, [bert.cert_der]) as server:
        with pytest.raises(TandemError) as failure:
            await reach(server, bert, anna.cert_der)
    assert failure.value.code == "wrong-certificate"


async def test_invariant_a_certificate_signed_by_a_pinned_device_is_refused(
    device: Callable[[str], Identity], tmp_path: Path
) -> None:
    """A pin stands for one certificate: its key can't vouch for another."""
    anna = device("anna")
    pinned = odd_certificate(key=device_key(5))
    forged = odd_certificate(key=device_key(6), signer=device_key(5))
    eve = identity_of(device_key(6), forged, tmp_path / "eve")
    async with serving(anna, [pinned]) as server:
        _, writer = await reach(server, eve, anna.cert_der)
        outcome = await server.outcome()
        assert isinstance(outcome, TandemError)
        writer.transport.abort()


async def test_invariant_a_certificate_that_openssl_accepts_is_still_compared_with_the_pins(
    device: Callable[[str], Identity],
) -> None:
    """Even if a context trusted too much (by a bug), the certificate itself must be pinned."""
    anna, bert, eve = device("anna"), device("bert"), device("eve")
    async with serving(anna, [bert.cert_der]) as server:

        async def too_trusting(sock: socket.socket) -> None:
            context = server_context(anna, [bert.cert_der, eve.cert_der])
            with pytest.raises(TandemError) as failure:
                await accept(sock, context, [bert.cert_der])
            await server.outcomes.put(failure.value)

        server.take = too_trusting  # type: ignore[method-assign]
        reader, writer = await reach(server, eve, anna.cert_der)
        outcome = await server.outcome()
        assert isinstance(outcome, TandemError)
        assert outcome.problem.detail == "another certificate than a pinned one"
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.transport.abort()


async def test_invariant_sessions_are_not_resumed(device: Callable[[str], Identity]) -> None:
    anna, bert = device("anna"), device("bert")
    context = client_context(bert, anna.cert_der)
    async with serving(anna, [bert.cert_der]) as server:
        for _ in range(2):
            reader, writer = await connect("127.0.0.1", server.port, context, anna.cert_der)
            _, far_writer = await server.streams()
            far_writer.write(b"x")
            await reader.readexactly(1)
            assert not writer.get_extra_info("ssl_object").session_reused
            assert server_context(anna, [bert.cert_der]).num_tickets == 0
            for end in (writer, far_writer):
                end.transport.abort()


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\xff\xff" + b"\0" * 400, b"GET / HTTP/1.1\r\n\r\n", b""])
async def test_garbage_and_a_stranger_that_leaves_are_refused(
    device: Callable[[str], Identity], garbage: bytes
) -> None:
    anna, bert = device("anna"), device("bert")
    async with serving(anna, [bert.cert_der]) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(garbage)
        writer.write_eof()
        assert isinstance(await server.outcome(), TandemError)
        writer.transport.abort()


async def test_a_client_that_never_speaks_is_let_go(device: Callable[[str], Identity]) -> None:
    anna, bert = device("anna"), device("bert")
    async with serving(anna, [bert.cert_der], handshake_s=0.05) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert isinstance(await server.outcome(), TandemError)
        writer.transport.abort()


async def test_a_closed_port_is_named(device: Callable[[str], Identity]) -> None:
    anna, bert = device("anna"), device("bert")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TandemError) as failure:
        await connect("127.0.0.1", port, client_context(bert, anna.cert_der), anna.cert_der)
    assert failure.value.code == NOBODY_LISTENS
    assert f"127.0.0.1 port {port}" in failure.value.what


async def test_a_port_that_never_answers_is_named(device: Callable[[str], Identity]) -> None:
    anna, bert = device("anna"), device("bert")
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(TandemError) as failure:
        port = listener.getsockname()[1]
        await connect("127.0.0.1", port, client_context(bert, anna.cert_der), anna.cert_der, handshake_s=0.05)
    assert failure.value.code == "unreachable"
