"""Two linked nodes test whether each could call a trainer of the other. On the core loop.

One asks over the link; the other calls the given port, then listens in turn and is called. The bytes read
there authenticate the answer. Security invariant: only the device at the other end of the link is called, and
only at ports of trainers, so that nobody can make this laptop probe anything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.runtime.background import Background
from core.supervisor import ports
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import Dialled, Message, ReachAsked, ReachTold

DIAL_S = 4.0
"""A connection's lost first packet is resent after 1 s and after 3 s."""
SLACK_S = 4.0
"""Allowance for a busy laptop."""
NONCE_BYTES = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reach:
    """``inward``: how the other laptop's call to this one went; ``outward``: this one's to the other.

    ``own_host``, ``peer_host``: the addresses that were called.
    """

    inward: Dialled
    outward: Dialled
    own_host: str
    peer_host: str


class TrialLinks(Protocol):
    """The part of ``core.link.hub.Links`` that is needed."""

    def send(self, device: DeviceId, message: Message) -> bool: ...

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None: ...

    def peer_host(self, device: DeviceId) -> str: ...

    def own_host(self, device: DeviceId) -> str: ...


class Trials:
    """A node's trials. No part of a trial takes more than a few seconds, whatever the other side does."""

    def __init__(
        self, links: TrialLinks, background: Background, dial_s: float = DIAL_S, slack_s: float = SLACK_S
    ) -> None:
        self._links, self._background = links, background
        self._dial_s, self._answer_s = dial_s, dial_s + slack_s
        self._trials: dict[DeviceId, asyncio.Task[Reach | None]] = {}
        self._answering: dict[DeviceId, asyncio.Task[None]] = {}

    async def try_with(self, device: DeviceId) -> Reach | None:
        """The result of a trial with a device; None: it failed. Concurrent callers share one trial."""
        trial = self._trials.get(device)
        if trial is None or trial.done():
            trial = self._trials[device] = self._background.start("the doctor's trial", self._try(device))
        await asyncio.wait({trial})
        return None if trial.cancelled() else trial.result()

    async def _try(self, device: DeviceId) -> Reach | None:
        own_host, peer_host = self._links.own_host(device), self._links.peer_host(device)
        if not own_host or not peer_host:
            return None
        nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            async with _listening(own_host, nonce) as (port, _):
                question = ReachAsked(nonce=nonce, port=port)
                told = await self._links.ask(device, question, self._answer_s)
        except (TandemError, OSError) as error:
            _log.info("%s could not be tried: %s", short(device), error)
            return None
        if not isinstance(told, ReachTold) or not _is_a_trainers(told.port):
            return None
        outward = await dial(peer_host, told.port, nonce, self._dial_s)
        return Reach(told.dialled, outward, own_host, peer_host)

    def on_asked(self, device: DeviceId, asked: ReachAsked) -> None:
        if len(asked.nonce) != NONCE_BYTES or not _is_a_trainers(asked.port):
            _log.warning("%s asked for a call to port %d, which no trainer uses", short(device), asked.port)
            return
        if before := self._answering.get(device):
            before.cancel()  # one at a time per laptop
        self._answering[device] = self._background.start("the doctor's call", self._answer(device, asked))

    async def _answer(self, device: DeviceId, asked: ReachAsked) -> None:
        own_host, peer_host = self._links.own_host(device), self._links.peer_host(device)
        if not own_host or not peer_host:
            return
        dialled = await dial(peer_host, asked.port, asked.nonce, self._dial_s)
        try:
            async with _listening(own_host, asked.nonce) as (port, was_read):
                self._links.send(device, ReachTold(nonce=asked.nonce, dialled=dialled, port=port))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._answer_s):
                        await was_read.wait()
        except (TandemError, OSError) as error:
            _log.warning("no port to listen at for %s: %s", short(device), error)
            self._links.send(device, ReachTold(nonce=asked.nonce, dialled=dialled, port=0))


async def dial(host: str, port: int, nonce: bytes, limit_s: float) -> Dialled:
    """Call a port and read the nonce. Never raises anything but ``CancelledError``."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection(host, port)
            said = await reader.readexactly(len(nonce))
    except ConnectionError:
        return "refused"
    except TimeoutError:
        return "stranger" if writer is not None else "silent"
    except asyncio.IncompleteReadError:
        return "stranger"
    except OSError:
        return "unreachable"
    finally:
        if writer is not None:
            writer.transport.abort()
    return "answers" if said == nonce else "stranger"


@contextlib.asynccontextmanager
async def _listening(host: str, nonce: bytes) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """Listens, and sends ``nonce`` to every caller. Yields the port, and an event for the first caller."""
    was_read = asyncio.Event()

    def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(nonce)
        writer.close()
        was_read.set()

    listener = ports.listen_anywhere(host)
    listener.setblocking(False)
    port: int = listener.getsockname()[1]
    async with await asyncio.start_server(tell, sock=listener, backlog=4):
        yield port, was_read


def _is_a_trainers(port: int) -> bool:
    return FIRST_PORT <= port < LAST_PORT
