"""A stranger at a whole node's real port: recorded bytes are replayed, reordered or cut short."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from core.home.certificate import build
from core.net.address import parse
from core.node.node import Node
from core.pairing.connection import framed, read_frame
from core.pairing.messages import M1, M2, Note, PairOk, decode, decode_m2_or_note, encode
from core.vocabulary.answers import Done
from core.vocabulary.commands import AnswerPairing, CancelPairing, Pair
from tests.core.certificates import device_key
from tests.core.nodes import LIMIT_S, address_of, id_of, node, pair, wait_for

pytestmark = pytest.mark.real


@pytest.fixture
async def ben(tmp_path: Path) -> AsyncIterator[Node]:
    async with node(tmp_path, "ben", discovery=False) as ben:
        yield ben


class Recorder:
    """Sits between a caller and ben, forwards everything, and records the caller's bytes."""

    def __init__(self, ben: Node) -> None:
        self._to = parse(address_of(ben))
        self.said: list[bytearray] = []
        self.address = ""
        self._carrying: set[asyncio.Task[None] | None] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._carry, "127.0.0.1", 0) as server:
            self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield
            async with asyncio.timeout(LIMIT_S):
                await asyncio.gather(*filter(None, self._carrying))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._carrying.add(asyncio.current_task())
        kept = bytearray()
        self.said.append(kept)
        there, back = await asyncio.open_connection(self._to.host, self._to.port)

        async def carry(source: asyncio.StreamReader, to: asyncio.StreamWriter, keep: bool) -> None:
            try:
                while data := await source.read(4096):
                    kept.extend(data if keep else b"")
                    to.write(data)
                    await to.drain()
            except OSError:
                pass
            finally:
                to.close()
                with contextlib.suppress(OSError):
                    await to.wait_closed()

        await asyncio.gather(carry(reader, back, True), carry(there, writer, False))


async def say(ben: Node, *frames: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    to = parse(address_of(ben))
    reader, writer = await asyncio.open_connection(to.host, to.port)
    for frame in frames:
        writer.write(frame)
    return reader, writer


async def all_said(reader: asyncio.StreamReader) -> bytes:
    """Reads until the node closes."""
    async with asyncio.timeout(LIMIT_S):
        try:
            return await reader.read()
        except OSError:
            return b""


async def all_served(node: Node) -> None:
    """Waits until every connection at its port has identified itself."""
    async with asyncio.timeout(LIMIT_S):
        while node._neighbours.listener.strangers.present:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def frames_in(data: bytes) -> list[bytes]:
    frames = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        frames.append(bytes(data[:end]))
        data = data[end:]
    return frames


def mallorys_m1(name: str = "mallory") -> bytes:
    return framed(encode(M1(sid=os.urandom(16), cert=build(device_key(66)), name=name)))


async def test_a_recorded_pairing_played_again_shows_another_code_and_pairs_nobody(
    tmp_path: Path, ben: Node
) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        recorder = Recorder(ben)
        async with recorder.listening():
            assert await anna.submit(Pair(address=recorder.address)) == Done()
            first = await wait_for(ben, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
            assert first.pairing is not None
            code = first.pairing.code
            for face in (anna, ben):
                assert await face.submit(CancelPairing()) == Done()
                await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "failed")
        plain = frames_in(bytes(recorder.said[0]))
        m1, m3 = plain[:2]
        assert decode(m1[4:], M1).cert == anna._opened.identity.cert_der and len(m3) == 4 + 32

        reader, writer = await say(ben, m1)
        answer = decode_m2_or_note(await read_frame(reader))
        assert isinstance(answer, M2)
        writer.write(m3)
        again = await wait_for(ben, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
        assert again.pairing is not None and again.pairing.code != code, "ben's number is a fresh one"
        # The messages that anna's user would have to send, and an unencrypted proof: they open nothing.
        writer.write(framed(encode(Note(note="same"))))
        writer.write(framed(encode(PairOk(th=os.urandom(32), port=1))))
        await wait_for(ben, lambda s: s.pairing is not None and s.pairing.stage == "failed")
        await all_said(reader)
        writer.close()
        assert not any(device.paired for device in ben.state.devices.values())
        assert ben._neighbours.trust.store.peers == ()


async def test_a_recorded_proof_played_again_opens_no_link(tmp_path: Path, ben: Node) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        recorder = Recorder(ben)
        async with recorder.listening():
            assert await anna.submit(Pair(address=recorder.address)) == Done()
            for face in (anna, ben):
                await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
            for face in (anna, ben):
                assert await face.submit(AnswerPairing(same=True)) == Done()
            for face in (anna, ben):
                await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "done")
        anna_id = id_of(anna)
    # Anna's own calls have ended now, and are not counted with the replayed ones.
    await all_served(ben)
    encrypted = [bytes(said) for said in recorder.said if said[:1] == b"\x16"]
    assert encrypted, "the proof went this way, over TLS"
    pins = ben._neighbours.trust.store.pins
    refused = ben._neighbours.listener.refusals.total
    for said in encrypted:
        reader, writer = await say(ben, said)
        await all_said(reader)
        writer.close()
    await all_served(ben)
    assert ben._neighbours.listener.refusals.total == refused + len(encrypted)
    assert ben._neighbours.trust.store.pins == pins
    assert ben._neighbours.trust.store.peer(anna_id) is not None


OUT_OF_TURN: dict[str, Sequence[bytes]] = {
    "the number first": [framed(os.urandom(32))],
    "same before anything": [framed(encode(Note(note="same")))],
    "a proof in plain": [framed(encode(PairOk(th=bytes(32), port=27600)))],
    "an answer to nothing": [
        framed(encode(M2(sid=bytes(16), cert=build(device_key(66)), name="m", commit=bytes(32))))
    ],
    "who it is, twice": [mallorys_m1(), mallorys_m1()],
    "same before the number": [mallorys_m1(), framed(encode(Note(note="same")))],
    "a proof before the number": [mallorys_m1(), framed(encode(PairOk(th=bytes(32), port=27600)))],
    "a short number": [mallorys_m1(), framed(os.urandom(31))],
    "nothing, at length": [bytes(4)],
}


@pytest.mark.parametrize("name", OUT_OF_TURN)
async def test_a_message_out_of_turn_ends_the_attempt_before_a_code_is_shown(ben: Node, name: str) -> None:
    shown: list[str] = []
    ben.subscribe(lambda event, state: shown.append(state.pairing.code if state.pairing else ""))
    reader, writer = await say(ben, *OUT_OF_TURN[name])
    await all_said(reader)
    writer.close()
    await wait_for(ben, lambda s: s.pairing is None or s.pairing.stage == "failed")
    assert not any(shown) and not ben.state.devices
    assert ben._neighbours.pairing.held() is None


async def test_breaking_off_after_the_commitment_pauses_calls_and_not_this_users_own_attempt(
    tmp_path: Path, ben: Node
) -> None:
    for _ in range(3):
        reader, writer = await say(ben, mallorys_m1())
        async with asyncio.timeout(LIMIT_S):
            assert isinstance(decode_m2_or_note(await read_frame(reader)), M2)
        writer.transport.abort()
        await wait_for(ben, lambda s: s.pairing is not None and s.pairing.stage == "failed")
    for _ in range(3):
        reader, writer = await say(ben, mallorys_m1("another name"))
        async with asyncio.timeout(LIMIT_S):
            answer = decode_m2_or_note(await read_frame(reader))
        assert answer == Note(note="paused"), "whoever calls, whatever it is called"
        writer.close()
    async with node(tmp_path, "anna", discovery=False) as anna:
        await pair(ben, anna)
