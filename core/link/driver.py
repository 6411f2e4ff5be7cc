"""Drives a link: a session with one paired device, over one connection after another. On the core loop.

A link that has been silent for ten seconds is *away*, and *back* with the next sign of life. It ends with a
goodbye, when the peer has forgotten it, or when its send queue overflows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, Protocol

from core.link import frames, problems
from core.link.budgets import Allowance
from core.link.frames import BadFrame
from core.link.outbox import Outbox
from core.link.silence import HEARTBEAT_S, Silence
from core.net.tls import Streams
from core.runtime.background import Background
from core.runtime.timers import Clock, Timers
from core.session import frames as words
from core.session import state as session
from core.session.frames import Begin, Goodbye, MalformedFrame, MessageHead
from core.session.machine import Session
from core.session.state import NotSent, Output, SessionLimits
from core.vocabulary.errors import Problem
from core.vocabulary.limits import SILENT_S
from core.vocabulary.peer_messages import MAX_FRAME_BYTES, Bye, Hello, Message

SHORT_BYTES = words.MAX_WORD_BYTES // 2
"""A message of up to this size is sent as one word of the session."""
UNCONFIRMED_BYTES = 8 << 20
"""Most bytes kept for resending; further messages wait in the outbox."""
_READ_BYTES = 1 << 16
_SESSION = SessionLimits(alive_s=HEARTBEAT_S, silent_s=SILENT_S, ack_bytes=1 << 20)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    flush_s: float = 2.0
    """Time for an ending link to send what is left."""
    stall_s: float = 30.0
    """How long a peer may confirm nothing of what is sent to it."""
    session: SessionLimits = _SESSION


LIMITS = Limits()


class Owner(Protocol):
    """Receives the link's events. All methods are called on the core loop and must not block; ``on_over`` is
    called once, and last."""

    name: str

    def on_message(self, link: Link, message: Message) -> None: ...

    def on_excess(self, problem: Problem) -> None: ...

    def on_lost(self, link: Link, problem: Problem) -> None:
        """The connection is lost; another one is needed."""

    def on_away(self, link: Link, problem: Problem) -> None:
        """Nothing has arrived for ``SILENT_S``."""

    def on_back(self, link: Link) -> None:
        """Something has arrived again. Nothing is lost."""

    def on_over(self, link: Link, problem: Problem) -> None:
        """Unconfirmed messages are lost."""


@dataclass(eq=False, slots=True)
class Connection:
    """One authenticated connection, after both hellos."""

    streams: Streams
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def abort(self) -> None:
        self.streams[1].transport.abort()


class Link:
    """The link to one device, over successive connections. ``background`` owns its tasks."""

    def __init__(
        self,
        owner: Owner,
        background: Background,
        *,
        clock: Clock,
        limits: Limits = LIMITS,
        allowance: Allowance | None = None,
    ) -> None:
        self._owner, self._background, self._clock, self._limits = owner, background, clock, limits
        self._allowance = allowance or Allowance()
        now_s = clock.time()
        self._session = Session[Connection](leads=False, can_call=False, limits=limits.session, now_s=now_s)
        self._connection: Connection | None = None
        self._outbox = Outbox()
        self._unconfirmed: deque[int] = deque()
        """Sizes of the messages that the session keeps for resending."""
        self._unconfirmed_bytes = 0
        self._body = bytearray()
        """The incoming message so far, in whole pieces."""
        self._to_send = asyncio.Event()
        self._timers: Timers[Literal["tick", "due"]] = Timers(clock, self._on_timer)
        self.is_over = self.is_away = False
        self._why: Problem | None = None
        """Why the connection was lost."""
        self._silence = Silence(now_s)
        self._progress_s = now_s
        """When the peer last confirmed something, or first had something to confirm."""
        self.ends: tuple[tuple[str, int], tuple[str, int]] = (("", 0), ("", 0))
        """The last connection's addresses, own and peer's, as the system writes them."""
        self._timers.set("tick", HEARTBEAT_S)

    # --- the owner's side ---------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The number of the newest connection."""
        return self._session.number

    def carry(self, streams: Streams, number: int) -> None:
        """Continue over a new connection, with a higher number than any before. Both hellos have been
        exchanged."""
        old, connection = self._connection, Connection(streams)
        self._connection, self._progress_s = connection, self._clock.time()
        own, peer = (streams[1].get_extra_info(end) or ("", 0) for end in ("sockname", "peername"))
        self.ends = own, peer
        self._session.offer(connection, self._progress_s, number=number)
        self._session.ready()
        if old is not None:
            old.abort()
        self._background.start(f"the link to {self._owner.name}", self._serve(connection))

    def send(self, message: Message) -> bool:
        """Queue a message. False: the link is over, or ends now because the peer does not keep up."""
        if self.is_over:
            return False
        if not self._outbox.put(message, is_away=self._connection is None):
            self.leave(problems.slow(self._owner.name, self._outbox.waiting_bytes))
            return False
        self._to_send.set()
        return True

    def leave(self, problem: Problem) -> None:
        """Say goodbye after everything queued, and end the link."""
        if self.is_over:
            return
        while (body := self._outbox.pop()) is not None:
            self._put(body)
        self._session.leave(problem, self._clock.time() + self._limits.flush_s)
        self._to_send.set()
        if (connection := self._connection) is None:
            self._session.end()
        else:
            self._background.start(f"goodbye to {self._owner.name}", self._bid_farewell(connection))
        self.end(problem)

    def end(self, problem: Problem) -> None:
        """End without a goodbye."""
        if self.is_over:
            return
        self.is_over = True
        self._timers.cancel("tick")
        if not self._session.is_leaving:
            self._session.end()
            if self._connection is not None:
                self._connection.abort()
        self._owner.on_over(self, problem)

    # --- time ---------------------------------------------------------------------------------------------

    def _on_timer(self, name: Literal["tick", "due"]) -> None:
        if name == "due":
            self._to_send.set()
            return
        self._timers.set("tick", HEARTBEAT_S)
        now_s = self._clock.time()
        self._note_time(now_s)
        if self._connection is None or self._session.is_held:
            return
        if now_s - self._session.heard_s >= SILENT_S:
            self._lose(self._connection, problems.silent(self._owner.name, SILENT_S))
        elif self._session.needs_another(now_s):
            self._lose(self._connection, problems.worn(self._owner.name))
        elif self._unconfirmed and now_s - self._progress_s >= self._limits.stall_s:
            self.leave(problems.stalled(self._owner.name, self._limits.stall_s))

    def _note_time(self, now_s: float) -> None:
        # Time in which this laptop itself slept or stood still does not count as the peer's silence.
        slept_s = self._silence.tick(now_s)
        self._session.heard_s = min(now_s, self._session.heard_s + slept_s)
        self._progress_s = min(now_s, self._progress_s + slept_s)
        if not (self.is_away or self._session.is_held) and self._silence.is_missed(now_s):
            self.is_away = True
            why = self._why or problems.silent(self._owner.name, SILENT_S)
            self._owner.on_away(self, self._silence.blamed(why, self._owner.name, now_s))

    # --- its connections ----------------------------------------------------------------------------------

    async def _serve(self, connection: Connection) -> None:
        reading = asyncio.create_task(self._read(connection))
        writing = asyncio.create_task(self._write(connection))
        try:
            await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)
            connection.abort()
            connection.ended.set()
            self._lose(connection, problems.closed(self._owner.name))

    def _lose(self, connection: Connection, problem: Problem) -> None:
        """Handle a connection that broke, or is given up."""
        self._session.lost(connection)
        if connection is not self._connection:
            return
        self._connection = None
        self._timers.cancel("due")
        connection.abort()
        if not self.is_over:
            self._why = self._silence.blamed(problem, self._owner.name, self._clock.time())
            self._owner.on_lost(self, self._why)

    async def _bid_farewell(self, connection: Connection) -> None:
        """Wait until the peer has read the goodbye: closing with unread bytes resets the connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * self._limits.flush_s):
                await connection.ended.wait()
        connection.abort()
        self._session.end()
        self._timers.cancel_all()

    # --- out ----------------------------------------------------------------------------------------------

    async def _write(self, connection: Connection) -> None:
        writer = connection.streams[1]
        try:
            while True:
                self._to_send.clear()
                if (output := self._next(connection)) is None:
                    if (wait_s := self._session.wait_s(self._clock.time())) is not None:
                        self._timers.set("due", wait_s)
                    await self._to_send.wait()
                    continue
                writer.write(output.frames)
                if output.piece is not None and output.piece.end > output.piece.begin:
                    writer.write(output.piece.data)
                await writer.drain()
        except (OSError, EOFError) as error:
            # Received data may contain the peer's goodbye, so the reader decides how the connection ends.
            _log.debug("%s: %s", self._owner.name, error)
            await connection.ended.wait()

    def _next(self, connection: Connection) -> Output | None:
        now_s = self._clock.time()
        if self._session.live is not connection:
            return None
        if (output := self._session.next(now_s)) is not None:
            return output
        has_room = self._session.is_flowing and self._unconfirmed_bytes < UNCONFIRMED_BYTES
        if not has_room or (body := self._outbox.pop()) is None:
            return None
        self._put(body)
        return self._session.next(now_s)

    def _put(self, body: bytes) -> None:
        if not self._unconfirmed:
            self._progress_s = self._clock.time()
        self._unconfirmed.append(len(body))
        self._unconfirmed_bytes += len(body)
        if len(body) <= SHORT_BYTES:
            self._session.put(session.Message(about=body))
        else:
            whole = memoryview(body)
            piece = session.Message(about=b"", size=len(body), piece=lambda begin, end: whole[begin:end])
            self._session.put(piece)

    # --- in -----------------------------------------------------------------------------------------------

    async def _read(self, connection: Connection) -> None:
        reader, received = connection.streams[0], bytearray()
        try:
            while data := await reader.read(_READ_BYTES):
                self._heard(connection)
                received += data
                while not self._session.is_over and connection is self._connection:
                    if (frame := words.pop(received)) is None:
                        break
                    if not await self._on_frame(*frame) or self._session.is_over:
                        return
        except (BadFrame, MalformedFrame, NotSent) as error:
            _log.warning("%s: %s", self._owner.name, error)
            bad = error if isinstance(error, BadFrame) else BadFrame(str(error))
            self.leave(bad.problem)
        except (OSError, EOFError) as error:
            _log.debug("%s: %s", self._owner.name, error)
            return
        except Exception:
            # A bug in a message handler ends this link, not the node.
            _log.exception("handling a message from %s failed", self._owner.name)
            self.leave(problems.failed(self._owner.name))
        else:
            return
        # Keep reading: the peer must be able to send until it has read the goodbye.
        with contextlib.suppress(OSError, EOFError):
            while await reader.read(_READ_BYTES):
                pass

    def _heard(self, connection: Connection) -> None:
        now_s = self._clock.time()
        if connection is not self._connection:
            return
        if self._silence.is_tick_late(now_s):
            self._note_time(now_s)
        self._silence.heard_s = self._session.heard_s = now_s
        if self.is_away and not self.is_over:
            self.is_away, self._why = False, None
            self._owner.on_back(self)

    async def _on_frame(self, kind: int, body: bytes) -> bool:
        """Handle one frame. False: the peer said goodbye."""
        if kind == words.PIECE:
            self._session.piece(len(body))
            self._body += body
            if self._session.came(len(body)):
                await self._arrived(bytes(self._body))
            return True
        word = words.decode(body, words.WORDS)
        match self._session.receive(word):
            case MessageHead() as head:
                if head.size > MAX_FRAME_BYTES or (head.size and head.about):
                    raise MalformedFrame(f"a message of {head.size} bytes")
                self._body.clear()
                if self._session.begin(head):
                    await self._arrived(head.about)
            case Goodbye() as goodbye:
                self.end(goodbye.problem)
                return False
        if isinstance(word, Begin) or len(self._unconfirmed) > self._session.unconfirmed:
            self._note_progress()
        return True

    def _note_progress(self) -> None:
        """Something was confirmed, or the connection began: more may be sent."""
        while len(self._unconfirmed) > self._session.unconfirmed:
            self._unconfirmed_bytes -= self._unconfirmed.popleft()
        self._progress_s = self._clock.time()
        self._to_send.set()

    async def _arrived(self, body: bytes) -> None:
        """Handle a whole message. Returns when further data may be read from the device."""
        if self.is_over:
            return
        message = frames.decode(body)
        if self._session.ack_is_due(self._clock.time()):
            self._to_send.set()
        if isinstance(message, Hello | Bye):
            raise BadFrame(f"{type(message).__name__} within a session")
        ruling = self._allowance.charge(message, self._clock.time())
        if not ruling.left_out:
            self._owner.on_message(self, message)
        if ruling.told is not None:
            self._owner.on_excess(problems.excess(self._owner.name, ruling.told))
        if ruling.pause_s > 0:
            over = asyncio.Event()
            self._clock.call_later(ruling.pause_s, over.set)
            self._session.is_held = True
            try:
                await over.wait()
            finally:
                self._session.is_held = False
                self._silence.heard_s = self._session.heard_s = self._clock.time()
