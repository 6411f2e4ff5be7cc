"""The connections of a pairing: a plain one for the messages, and one inside mutual TLS 1.3 for the proof.

Whole frames in and out, and nothing longer than 4096 bytes is read. For the proof, the last step, each side
sends PAIR_OK over TLS with the compared certificate as the pin: TLS proves that the peer holds the
certificate's key, an equal ``th`` proves that both mean this pairing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from core.net.address import host_of
from core.net.tls import Streams
from core.pairing import problems
from core.pairing.code import equal
from core.pairing.messages import LENGTH_BYTES, MAX_FRAME_BYTES, PairOk, decode, encode
from core.vocabulary.errors import TandemError

CLOSE_S = 5.0


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame's body. Raises ``TandemError`` for an invalid one, ``EOFError`` or ``OSError`` at the
    end."""
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if not 0 < length <= MAX_FRAME_BYTES:
        # Check before reading: readexactly would buffer any length in memory.
        raise TandemError.of(problems.malformed(f"a frame of {length} bytes"))
    return await reader.readexactly(length)


class PlainConnection:
    """A connection with its number; writing never blocks and never raises."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self._reader, self._writer = reader, writer

    @property
    def host(self) -> str:
        name = self._writer.get_extra_info("peername")
        return host_of(name) if name else ""

    async def read(self) -> bytes:
        return await read_frame(self._reader)

    def send(self, body: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(framed(body))

    def close(self) -> None:
        """Close after queued data is sent, or after ``CLOSE_S``. Returns at once."""
        transport = self._writer.transport
        transport.close()
        if transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(CLOSE_S, transport.abort)

    async def wait_closed(self) -> None:
        """Close, and wait until the connection is closed; abort it after ``CLOSE_S``."""
        self._writer.transport.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


SETTLE_S = 3.0
"""How long the initiator waits for the responder to trust it."""


async def prove(streams: Streams, proof: bytes, own_port: int) -> int:
    """The initiator's part; returns the peer's port. Raises ``TandemError``, ``OSError`` or ``EOFError``."""
    reader, writer = streams
    writer.write(framed(encode(PairOk(th=proof, port=own_port))))
    await writer.drain()
    port = _checked(decode(await read_frame(reader), PairOk), proof)
    # The responder closes once its node trusts us: a link opened sooner would be refused.
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(SETTLE_S):
            await reader.read(1)
    return port


async def answer_proof(streams: Streams, proof: bytes, own_port: int) -> int:
    """The responder's part; returns the peer's port. Sends nothing before the peer's proof was verified."""
    reader, writer = streams
    port = _checked(decode(await read_frame(reader), PairOk), proof)
    writer.write(framed(encode(PairOk(th=proof, port=own_port))))
    await writer.drain()
    return port


def _checked(pair_ok: PairOk, proof: bytes) -> int:
    if not equal(pair_ok.th, proof):
        raise TandemError.of(problems.attack("the other device proved a different pairing."))
    return pair_ok.port
