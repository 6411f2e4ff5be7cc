"""Pairing with everything that can go wrong between two laptops: each test in memory, and with sockets and
TLS."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from core.home.certificate import build
from core.home.identity import Identity
from core.net import tls
from core.net.address import Address
from core.net.strangers import PER_ADDRESS
from core.pairing.code import Transcript
from core.pairing.connection import framed, read_frame
from core.pairing.messages import M1, Note, PairOk, decode, encode
from core.pairing.state import LIMITS, Event, Limits, Paired
from core.vocabulary.errors import TandemError
from core.vocabulary.events import PairingAnswered, PairingCodeShown
from tests.core.certificates import device_key, identity_of
from tests.core.pairing.meeting import LIMIT_S, Device, Raw, device, stranger, until
from tests.core.wires import Network


@pytest.fixture(params=["memory", pytest.param("loopback", marks=pytest.mark.real)])
def network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Network | None:
    if request.param == "loopback":
        return None
    network = Network()
    network.install(monkeypatch, "core.pairing.driver")
    return network


@pytest.fixture
def limits() -> Limits:
    return LIMITS


@pytest.fixture
async def anna(tmp_path: Path, network: Network | None, limits: Limits) -> AsyncIterator[Device]:
    async with device(tmp_path, "anna", network, limits) as there:
        yield there


@pytest.fixture
async def bert(tmp_path: Path, network: Network | None, limits: Limits) -> AsyncIterator[Device]:
    async with device(tmp_path, "bert", network, limits) as there:
        yield there


@pytest.fixture
def eve(tmp_path: Path) -> Identity:
    return identity_of(device_key(66), build(device_key(66)), tmp_path / "eve")


async def until_codes(anna: Device, bert: Device) -> tuple[PairingCodeShown, PairingCodeShown]:
    anna.pairing.start(bert.address, bert.name)
    return await anna.code(), await bert.code()


# --- the way it should go ----------------------------------------------------------------------------------


async def test_two_devices_pair_over_real_sockets(anna: Device, bert: Device) -> None:
    here, there = await until_codes(anna, bert)
    assert here.code == there.code
    assert (here.name, there.name) == ("bert", "anna")
    assert (here.device, there.device) == (bert.identity.device_id, anna.identity.device_id)

    anna.pairing.answer(True)
    await anna.event(PairingAnswered)
    assert anna.pairing.held() == bert.identity.cert_der
    bert.pairing.answer(True)

    paired_here, paired_there = await anna.event(Paired), await bert.event(Paired)
    assert paired_here.cert == bert.identity.cert_der
    assert paired_there.cert == anna.identity.cert_der
    assert paired_here.address == bert.address
    assert paired_there.address == anna.address
    assert anna.pairing.held() is bert.pairing.held() is None
    assert anna.held_changes == bert.held_changes == 2


async def test_when_the_caller_is_paired_the_other_side_trusts_it_already(anna: Device, bert: Device) -> None:
    """So that a link opened immediately is not refused."""
    trusted_by_then: list[bool] = []

    def look(event: Event) -> None:
        if isinstance(event, Paired):
            trusted_by_then.append(anna.identity.cert_der in bert.trusted)

    anna.on_event = look
    await until_codes(anna, bert)
    anna.pairing.answer(True)
    bert.pairing.answer(True)
    await anna.event(Paired)
    assert trusted_by_then == [True]


async def test_paired_devices_can_pair_again_after_one_lost_its_pin(anna: Device, bert: Device) -> None:
    for _ in range(2):
        await until_codes(anna, bert)
        anna.pairing.answer(True)
        bert.pairing.answer(True)
        await anna.event(Paired)
        await bert.event(Paired)
        bert.trusted.clear()


# --- security invariants -----------------------------------------------------------------------------------


async def test_invariant_a_code_without_the_key_pairs_nobody(
    anna: Device, bert: Device, eve: Identity, tmp_path: Path
) -> None:
    """Eve shows Anna's certificate, gets the codes compared, but does not have Anna's key."""
    async with stranger(bert) as raw:
        m1_body = encode(M1(sid=b"s" * 16, cert=anna.identity.cert_der, name="anna"))
        await raw.send(m1_body)
        await raw.frame()
        await raw.send(b"e" * 32)
        await raw.frame()
        await bert.code()
        bert.pairing.answer(True)
        await bert.event(PairingAnswered)
        assert decode(await raw.frame(), Note).note == "same"
        # TLS with her own key: refused, since only Anna's certificate is pinned.
        context, pin = tls.client_context(eve, bert.identity.cert_der), bert.identity.cert_der
        reader, writer = await tls.connect("127.0.0.1", bert.port, context, pin)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.transport.abort()
        assert len(bert.tls_refusals) == 1
        await raw.send(encode(Note(note="cancelled")))
        assert await bert.failure() == "pairing-cancelled"
    assert not bert.trusted


async def eve_as_initiator(bert: Device, eve: Identity, raw: Raw) -> Transcript:
    m1_body = encode(M1(sid=b"s" * 16, cert=eve.cert_der, name="eve"))
    await raw.send(m1_body)
    m2_body = await raw.frame()
    await raw.send(b"e" * 32)
    nonce = await raw.frame()
    m1, m2 = hashlib.sha256(m1_body).digest(), hashlib.sha256(m2_body).digest()
    return Transcript(eve.fingerprint, bert.identity.fingerprint, b"e" * 32, nonce, m1, m2)


async def test_invariant_another_th_is_called_an_attack(bert: Device, eve: Identity) -> None:
    async with stranger(bert) as raw:
        transcript = await eve_as_initiator(bert, eve, raw)
        shown = await bert.code()
        assert shown.code.replace(" ", "") == transcript.code
        bert.pairing.answer(True)
        assert decode(await raw.frame(), Note).note == "same"
        context, pin = tls.client_context(eve, bert.identity.cert_der), bert.identity.cert_der
        _, writer = await tls.connect("127.0.0.1", bert.port, context, pin)
        writer.write(framed(encode(PairOk(th=b"x" * 32, port=1))))
        assert await bert.failure() == "pairing-attack"
        writer.transport.abort()
    assert not bert.trusted


async def test_invariant_before_our_users_same_the_proof_is_not_even_heard(
    bert: Device, eve: Identity
) -> None:
    async with stranger(bert) as raw:
        transcript = await eve_as_initiator(bert, eve, raw)
        await bert.code()
        context, pin = tls.client_context(eve, bert.identity.cert_der), bert.identity.cert_der
        reader, writer = await tls.connect("127.0.0.1", bert.port, context, pin)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            writer.write(framed(encode(PairOk(th=transcript.proof, port=1))))
            await reader.readexactly(1)
        writer.transport.abort()
        assert len(bert.tls_refusals) == 1
        assert bert.events.empty()


async def test_a_first_message_that_is_no_proof_does_not_spoil_the_pairing(
    bert: Device, eve: Identity
) -> None:
    """A paired device that pairs again may send its link's hello meanwhile."""
    async with stranger(bert) as raw:
        transcript = await eve_as_initiator(bert, eve, raw)
        await bert.code()
        bert.pairing.answer(True)
        assert decode(await raw.frame(), Note).note == "same"
        context, pin = tls.client_context(eve, bert.identity.cert_der), bert.identity.cert_der
        for body in (b"\x82\xa4type\xa5hello", b"", encode(PairOk(th=transcript.proof, port=4711))):
            reader, writer = await tls.connect("127.0.0.1", bert.port, context, pin)
            writer.write(framed(body))
            async with asyncio.timeout(LIMIT_S):
                if b"pair" in body or b"th" in body:
                    answer = decode(await read_frame(reader), PairOk)
                    assert answer.th == transcript.proof
                assert await reader.read() == b""
            writer.transport.abort()
        assert (await bert.event(Paired)).address == Address("127.0.0.1", 4711)


async def test_invariant_ones_own_address_is_refused_and_named(anna: Device) -> None:
    anna.pairing.start(anna.address, "somebody")
    assert await anna.failure() == "pairing-self"


# --- trouble -----------------------------------------------------------------------------------------------


async def test_another_version_is_named_on_the_callers_screen(anna: Device) -> None:
    async def newer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(framed(b'{"v":2,"note":"version"}'))
        writer.close()

    async with await asyncio.start_server(newer, "127.0.0.1", 0) as server:
        anna.pairing.start(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
        problem = await anna.problem()
    assert problem.code == "pairing-version"
    assert "version 2" in problem.what


async def test_a_newer_caller_is_told_our_version(bert: Device) -> None:
    async with stranger(bert) as raw:
        await raw.send(b'{"v":2,"cert":{}}')
        assert decode(await raw.frame(), Note) == Note(v=1, note="version")
        await raw.wait_closed()
    assert bert.events.empty()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\x10\x01" + b"x" * 5000,
        b"\x7f\xff\xff\xff" + b"x" * 5000,
        b"\xff" * 5000,
        b"\0\0\0\x05{}",
    ],
)
async def test_garbage_and_huge_frames_from_strangers_change_nothing(bert: Device, garbage: bytes) -> None:
    async with stranger(bert) as raw:
        raw.writer.write(garbage)
        if raw.writer.can_write_eof():
            raw.writer.write_eof()
        await raw.wait_closed()
    assert bert.events.empty()
    assert bert.pairing.strangers.present == 0


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\x02{}", b""])
async def test_garbage_in_answer_to_our_call_is_named(anna: Device, garbage: bytes) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(garbage)
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        anna.pairing.start(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
        assert await anna.failure() in ("pairing-malformed", "pairing-lost")


@pytest.mark.parametrize("limits", [Limits(handshake_s=10 * LIMIT_S)])
async def test_half_open_connections_hold_no_more_than_four_places(bert: Device) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(PER_ADDRESS):
            raw = await stack.enter_async_context(stranger(bert))
            raw.writer.write(b"\0\0")  # the beginning of a frame, and then nothing
        await until(lambda: bert.pairing.strangers.present == PER_ADDRESS)
        one_more = await stack.enter_async_context(stranger(bert))
        one_more.writer.write(b"\0\0")
        await one_more.wait_closed()
        assert bert.pairing.strangers.present == PER_ADDRESS
    await until(lambda: bert.pairing.strangers.present == 0)
    assert bert.events.empty()


@pytest.mark.parametrize("limits", [Limits(handshake_s=0.05)])
async def test_a_half_open_connection_is_let_go(bert: Device) -> None:
    async with stranger(bert) as raw:
        raw.writer.write(b"\0\0\0\x05{")
        await raw.wait_closed()
        await until(lambda: bert.pairing.strangers.present == 0)
    assert bert.events.empty()


@pytest.mark.parametrize("limits", [Limits(code_s=0.05)])
async def test_a_silent_answerer_ends_with_its_address_named(anna: Device) -> None:
    closed = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        closed.set()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        anna.pairing.start(Address("127.0.0.1", port), "bert")
        problem = await anna.problem()
        async with asyncio.timeout(LIMIT_S):
            await closed.wait()
    assert problem.code == "pairing-timeout"
    assert f"127.0.0.1:{port}" in problem.what


async def test_a_closed_port_is_named(anna: Device, bert: Device) -> None:
    address = bert.address
    await bert.__aexit__()
    anna.pairing.start(address, "bert")
    problem = await anna.problem()
    assert problem.code == "unreachable"
    assert problem.what == f"{address} can't be reached ({os.strerror(errno.ECONNREFUSED)})."


async def test_an_invalid_host_is_reported(anna: Device) -> None:
    anna.pairing.start(Address("a" * 64 + ".local"), "bert")
    assert await anna.failure() == "unreachable"


async def test_a_peer_that_dies_while_comparing_ends_it(anna: Device, bert: Device, eve: Identity) -> None:
    async with stranger(bert) as raw:
        await eve_as_initiator(bert, eve, raw)
        await bert.code()
    assert await bert.failure() == "pairing-lost"


async def test_a_pairing_that_is_cancelled_hangs_up_on_one_that_does_not(bert: Device, eve: Identity) -> None:
    async with stranger(bert) as raw:
        await eve_as_initiator(bert, eve, raw)
        await bert.code()
        bert.pairing.cancel()
        assert decode(await raw.frame(), Note).note == "cancelled"
        await raw.wait_closed()
        assert await bert.failure() == "pairing-cancelled"


async def test_a_second_start_and_an_answer_without_a_code_say_so(anna: Device, bert: Device) -> None:
    with pytest.raises(TandemError) as failure:
        anna.pairing.answer(True)
    assert failure.value.code == "no-pairing"
    anna.pairing.start(bert.address, "bert")
    with pytest.raises(TandemError) as failure:
        anna.pairing.start(bert.address, "bert")
    assert failure.value.code == "pairing-busy"
    await anna.code()
    anna.pairing.cancel()
    assert await anna.failure() == "pairing-cancelled"
    assert await bert.failure() == "pairing-cancelled"
    anna.pairing.cancel()


async def test_after_three_failures_a_start_says_how_long_to_wait(anna: Device, bert: Device) -> None:
    for _ in range(3):
        await until_codes(anna, bert)
        anna.pairing.answer(False)
        await anna.failure()
        await bert.failure()
    with pytest.raises(TandemError) as failure:
        anna.pairing.start(bert.address, "bert")
    assert failure.value.code == "pairing-paused"
    assert "seconds" in failure.value.what


async def test_a_known_name_with_a_new_key_is_warned_of(anna: Device, bert: Device, eve: Identity) -> None:
    anna.known = [eve.device_id]
    bert.known = [anna.identity.device_id]
    here, there = await until_codes(anna, bert)
    assert here.warning is not None
    assert here.warning.code == "pairing-new-key"
    assert there.warning is None, "the same device again is no news"


async def test_a_name_of_several_alphabets_is_warned_of(anna: Device, bert: Device) -> None:
    bert.pairing.rename("b\u0435rt")
    here, there = await until_codes(anna, bert)
    assert here.warning is not None and here.warning.code == "pairing-mixed-name"
    assert there.warning is None


async def test_closing_in_the_middle_tells_the_other_side(anna: Device, bert: Device) -> None:
    await until_codes(anna, bert)
    await anna.pairing.close()
    assert await bert.failure() == "pairing-cancelled"
