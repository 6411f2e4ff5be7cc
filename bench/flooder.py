"""The link of a paired device that floods an agent, without the limits that hold an honest one back."""

from __future__ import annotations

import asyncio

from core.home.identity import Identity
from core.link import frames
from core.link.budgets import Allowance, Ruling
from core.link.driver import Limits
from core.link.hub import Links
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.readings import Hardware
from core.vocabulary.versions import installed

UNREAD_BYTES = 1 << 20
"""Most bytes in flight at once."""
LIMIT_S = 60.0
"""Longest time for an answer."""


class _Unheld(Allowance):
    """A flooder reads every answer at once, and so learns what of its flood was read."""

    def take(self, message: ms.Message, now_s: float) -> Ruling:
        return Ruling()


class Link:
    """The flooder's link. Reads everything that the agent sends, or it would drop this device."""

    def __init__(self, identity: Identity, victim: Identity, port: int) -> None:
        self.heard: asyncio.Queue[ms.Message] = asyncio.Queue()
        self._victim = victim.device_id
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self._links = Links(
            identity,
            _hello,
            on_up=lambda *_: self._up.set(),
            on_away=lambda *_: None,
            on_down=lambda *_: self._down.set(),
            on_message=lambda _, message: self.heard.put_nowait(message),
            on_excess=lambda *_: None,
            limits=Limits(stall_s=10 * LIMIT_S),
        )
        self._links.pair(victim.cert_der, name="victim", hints=[f"127.0.0.1:{port}"])
        self._peer = self._links._peers[self._victim]
        self._peer._allowance = _Unheld()

    async def begun(self) -> None:
        await asyncio.wait_for(self._up.wait(), LIMIT_S)

    @property
    def unread(self) -> int:
        """Messages that the agent has not confirmed."""
        return len(self._peer.link._unconfirmed) if self._peer.link is not None else 0

    async def say(self, message: ms.Message) -> None:
        await self.say_bytes(frames.body(message))

    async def say_bytes(self, body: bytes) -> None:
        """Bypasses the outbox, which drops much of a flood."""
        link = self._peer.link
        if link is None:
            raise RuntimeError("the agent ended the link")
        link._put(body)
        link._to_send.set()
        while link._unconfirmed_bytes > UNREAD_BYTES and not link.is_over:  # noqa: ASYNC110  (told to nobody)
            await asyncio.sleep(0.001)

    async def lives(self) -> None:
        """Waits for a message from the agent. Raises TimeoutError if none comes."""
        while not self.heard.empty():
            self.heard.get_nowait()
        async with asyncio.timeout(LIMIT_S):
            await self.heard.get()

    async def ended(self) -> None:
        """Waits until the agent ends the link. Raises TimeoutError."""
        await asyncio.wait_for(self._down.wait(), LIMIT_S)

    async def close(self) -> None:
        await self._links.close(Problem(code="closed", what="It ends."))


def _hello() -> ms.Hello:
    hardware = Hardware(cpu="bench", cores=2, memory_bytes=8_000_000_000)
    return ms.Hello(name="mallory", versions=installed(), hardware=hardware, port=1, busy=False)
