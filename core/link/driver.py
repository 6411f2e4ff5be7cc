"""Drives one link: bytes to and from its machine, its timer, its bounded queue. On the core loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import Literal, Protocol

from core.link import machine, problems
from core.link.frames import BadFrame, Decoder, encode
from core.link.outbox import Outbox
from core.link.state import (
    Broken,
    CameUp,
    Deliver,
    End,
    Event,
    Leaving,
    Opening,
    Received,
    Send,
    State,
    Ticked,
)
from core.net.tls import Streams
from core.runtime.background import Background
from core.runtime.timers import Clock, Timers
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.peer_messages import Bye, Hello, Message

_READ_BYTES = 1 << 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    flush_s: float = 2.0
    """How long the last words of an ending link may take."""
    stall_s: float = 30.0
    """How long a peer may take nothing of what is sent to it."""


LIMITS = Limits()


class Owner(Protocol):
    """Who is told. All three are called on the core loop and must not block; ``on_over`` comes once."""

    def on_up(self, connection: Connection, hello: Hello) -> None: ...

    def on_message(self, connection: Connection, message: Message) -> None: ...

    def on_over(self, connection: Connection, problem: Problem) -> None: ...


class Connection:
    """One authenticated connection. ``background`` owns its task, which ends soon after it is over."""

    def __init__(
        self,
        streams: Streams,
        name: str,
        owner: Owner,
        background: Background,
        *,
        clock: Clock,
        limits: Limits = LIMITS,
    ) -> None:
        self._reader, self._writer = streams
        self._name = name
        self._owner = owner
        self._background = background
        self._clock = clock
        self._limits = limits
        self._outbox = Outbox()
        self._to_send, self._room, self._over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.mine: Hello
        """What was said of this laptop."""
        self._state: State
        self._timers: Timers[Literal["heartbeat"]] = Timers(clock, lambda _: self._tick())

    def start_as_caller(self, mine: Hello) -> None:
        """We opened this connection: say hello; the peer's is to come."""
        self.mine = mine
        self._start(machine.dialled(mine, self._name, self._clock.time()))

    def start_as_called(self, mine: Hello, theirs: Hello) -> None:
        """The peer opened this connection and said ``theirs``."""
        self.mine = mine
        self._start(machine.accepted(mine, theirs, self._name, self._clock.time()))

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Own and the peer's address as the system writes them."""
        own, peer = (self._writer.get_extra_info(end) or ("", 0) for end in ("sockname", "peername"))
        return own, peer

    def send(self, message: Message) -> bool:
        """Queue a message. False: the link is over, or ends now because the peer does not keep up."""
        if self._over.is_set():
            return False
        if not self._outbox.put(message):
            self._happened(Broken(problems.slow(self._name, self._outbox.waiting_bytes)))
            return False
        self._to_send.set()
        if not self._outbox.flows:
            self._room.clear()
        return True

    async def send_flowing(self, message: Message) -> bool:
        """Queue a message once there is room. False: the link is over. A peer that takes nothing ends it."""
        while not self._outbox.flows and not self._over.is_set():
            await self._room.wait()
        return self.send(message)

    def leave(self, problem: Problem) -> None:
        """Say goodbye and end the link."""
        self._happened(Leaving(problem))

    def _start(self, first: machine.Step) -> None:
        self._background.start(f"the link to {self._name}", self._live())
        self._timers.set("heartbeat", machine.HEARTBEAT_S)
        self._enter(first)

    def _tick(self) -> None:
        self._timers.set("heartbeat", machine.HEARTBEAT_S)
        self._happened(Ticked())

    def _happened(self, event: Event) -> None:
        self._enter(machine.step(self._state, event, self._clock.time()))

    def _enter(self, after: machine.Step) -> None:
        self._state, effects = after
        for effect in effects:
            match effect:
                case Send(message):
                    self.send(message)
                case CameUp(hello):
                    self._owner.on_up(self, hello)
                case Deliver(message):
                    self._owner.on_message(self, message)
                case End(problem):
                    self._end(problem)

    def _end(self, problem: Problem) -> None:
        self._timers.cancel_all()
        for event in (self._over, self._to_send, self._room):
            event.set()
        self._owner.on_over(self, problem)

    async def _live(self) -> None:
        reading, writing = asyncio.create_task(self._read()), asyncio.create_task(self._write())
        try:
            await self._over.wait()
            # Reading goes on: closing with unread bytes would reset the connection and lose our last words.
            await asyncio.wait((writing,), timeout=self._limits.flush_s)
            self._writer.close()
            with contextlib.suppress(OSError, TimeoutError, EOFError):
                async with asyncio.timeout(self._limits.flush_s):
                    await self._writer.wait_closed()
        finally:
            self._writer.transport.abort()
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

    async def _read(self) -> None:
        decoder = Decoder()
        try:
            while data := await self._reader.read(_READ_BYTES):
                if self._over.is_set():
                    continue
                for message in decoder.feed(data):
                    self._happened(Received(message))
        except BadFrame as failure:
            _log.warning("%s: %s", self._name, failure.problem.detail)
            self._happened(Broken(failure.problem))
        except (OSError, EOFError) as error:
            self._happened(Broken(self._broke(str(error))))
        except Exception:
            # A bug in whoever handles messages ends this link, not the node.
            _log.exception("handling a message of %s", self._name)
            self._happened(Broken(problems.failed(self._name)))
        else:
            self._happened(Broken(self._broke("end of stream")))

    async def _write(self) -> None:
        try:
            while True:
                frame = self._outbox.take()
                if self._outbox.flows:
                    self._room.set()
                if frame is not None:
                    self._writer.write(frame)
                    async with asyncio.timeout(self._limits.stall_s):
                        await self._writer.drain()
                elif self._over.is_set():
                    return
                else:
                    self._to_send.clear()
                    await self._to_send.wait()
        except TimeoutError:
            self._happened(Broken(problems.stalled(self._name, self._limits.stall_s)))
        except (OSError, EOFError) as error:
            # The reader may still have the peer's goodbye in hand: it says how this ends, or ends by itself.
            _log.debug("%s: %s", self._name, error)

    def _broke(self, detail: str) -> Problem:
        if isinstance(self._state, Opening):
            return problems.turned_away(self._name, detail)
        return problems.closed(self._name, detail)


async def turn_away(streams: Streams, problem: Problem, limits: Limits = LIMITS) -> None:
    """Close a connection that does not become a link, with a word of why. Never longer than ``flush_s``."""
    _, writer = streams
    try:
        async with asyncio.timeout(limits.flush_s):
            writer.write(encode(Bye(problem=problem)))
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    except (OSError, EOFError, TimeoutError, TandemError) as error:
        _log.debug("turning a connection away: %s", error)
    finally:
        writer.transport.abort()
