"""The first words on a connection: a hello in each direction. A session follows (``core.session``).

Protocol versions are compared here. Both sides have both hellos and reach the same verdict, so a peer with
another version gets nothing beyond the hello.
"""

from __future__ import annotations

import asyncio
import logging

from core.link import problems
from core.link.frames import decode, encode, read_body
from core.net.tls import Streams
from core.vocabulary import versions
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.peer_messages import Bye, Hello

HELLO_S = 10.0
"""How long a called peer may take to say hello."""
_log = logging.getLogger(__name__)


async def call(streams: Streams, mine: Hello, name: str, *, limit_s: float = HELLO_S) -> Hello:
    """Say hello on a connection that this side opened. Returns the peer's hello. Raises ``TandemError``."""
    reader, writer = streams
    try:
        async with asyncio.timeout(limit_s):
            writer.write(encode(mine))
            await writer.drain()
            answer = decode(await read_body(reader))
    except TimeoutError as error:
        raise TandemError.of(problems.silent(name, limit_s)) from error
    except (OSError, EOFError) as error:
        raise TandemError.of(problems.turned_away(name, str(error))) from error
    if isinstance(answer, Bye):
        raise TandemError.of(answer.problem)
    if not isinstance(answer, Hello):
        raise TandemError.of(problems.out_of_turn(name, type(answer).__name__))
    if (problem := difference(mine, answer, name)) is not None:
        raise TandemError.of(problem)
    return answer


def answer(streams: Streams, mine: Hello) -> None:
    """Say hello to a peer that called and has said its own."""
    streams[1].write(encode(mine))


def difference(mine: Hello, theirs: Hello, name: str) -> Problem | None:
    """Why the two can't communicate; None: they use the same protocol. Other versions may still differ."""
    if mine.versions.protocol == theirs.versions.protocol:
        return None
    return versions.difference(mine.versions, theirs.versions, name) or problems.bad_hello(name)


async def turn_away(streams: Streams, last: Hello | Bye, limit_s: float) -> None:
    """Close a connection that does not become a link, after a last message. Takes at most ``limit_s``."""
    _, writer = streams
    try:
        async with asyncio.timeout(limit_s):
            writer.write(encode(last))
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    except (OSError, EOFError, TimeoutError, TandemError) as error:
        _log.debug("turning a connection away: %s", error)
    finally:
        writer.transport.abort()
