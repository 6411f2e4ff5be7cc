"""The last step, inside mutual TLS 1.3 with the compared certificate as the pin: each side sends PAIR_OK.

TLS proves that the peer holds the key of the certificate; an equal ``th`` proves that both mean this pairing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from core.net.tls import Streams
from core.pairing import problems
from core.pairing.code import equal
from core.pairing.messages import PairOk, decode, encode
from core.pairing.session import framed, read_frame
from core.vocabulary.errors import TandemError

SETTLE_S = 3.0


async def prove(streams: Streams, proof: bytes, own_port: int) -> int:
    """The initiator's part; gives the peer's port. Raises ``TandemError``, ``OSError`` or ``EOFError``."""
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
    """The responder's part; gives the peer's port. Nothing is sent before the peer's proof was right."""
    reader, writer = streams
    port = _checked(decode(await read_frame(reader), PairOk), proof)
    writer.write(framed(encode(PairOk(th=proof, port=own_port))))
    await writer.drain()
    return port


def _checked(pair_ok: PairOk, proof: bytes) -> int:
    if not equal(pair_ok.th, proof):
        raise TandemError.of(problems.attack("the other device proved another pairing than this one."))
    return pair_ok.port
