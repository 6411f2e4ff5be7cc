"""A session over pairs of blocking connections, one per direction: one thread sends, another receives.

One of the user's threads may send while the sending thread is idle, and one that waits may read while the
receiving thread rests (``turns``); a third thread exists during a call. Each serves one pair at a time: the
receiving thread finishes the old pair before a new one, so that everything that arrived is counted.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.session import frames
from core.session.frames import Ack, Begin, Goodbye, MalformedFrame, MessageHead
from core.session.interface import DIRECTIONS, ConnectionPair, Direction, Stream, User
from core.session.machine import ACK_S, Session
from core.session.state import Message, NotSent, Output, SessionLimits
from core.session.turns import Arrivals, ReadTurns
from core.vocabulary.errors import Problem

BEGIN_S = 10.0
"""Time limit for the leader's first frame on a new pair."""
CUT_S = 1.0
"""After sending failed: how long received data is still read."""

_log = logging.getLogger(__name__)


class SessionDriver:
    """Runs a session. ``name``: of its threads. Thread-safe; close it with ``end`` and ``join``."""

    def __init__(self, user: User, name: str, *, leads: bool, can_call: bool, limits: SessionLimits) -> None:
        self._user, self._name, self._limits = user, name, limits
        self._changed = threading.Condition()
        self._machine = Session[ConnectionPair](
            leads=leads, can_call=can_call, limits=limits, now_s=time.monotonic()
        )
        self.turns = ReadTurns(self._changed, limits.rest_s)
        self._room: memoryview | None = None
        """Buffer for the incoming message."""
        self._discarded = memoryview(bytearray(frames.PIECE_BYTES))
        """Buffer for messages that nobody wants."""
        self._callers: list[threading.Thread] = []
        self._is_resting = self._is_pushing = False
        """Whether the sending thread waits for something to send, and whether another thread sends in its
        place."""
        self._is_awaited = False
        """Whether a thread waits for confirmations."""
        self._next_check_s = math.inf
        """When the sending thread will next check for due work."""
        self._threads = [self._thread(each, self._serve, each) for each in DIRECTIONS]

    def _thread(self, kind: str, target: Callable[..., None], *args: object) -> threading.Thread:
        return threading.Thread(target=target, args=args, name=f"{self._name}-{kind}", daemon=True)

    # The user's side

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @contextmanager
    def locked(self) -> Iterator[Session[ConnectionPair]]:
        """The machine, for inspection."""
        with self._changed:
            yield self._machine

    def put(self, message: Message) -> None:
        """Queue a message; ``wake`` or ``push`` sends it."""
        with self._changed:
            self._machine.put(message)

    def wake(self) -> None:
        """Let the sending thread send what is queued. Returns at once."""
        with self._changed:
            self._changed.notify_all()

    def call_anew(self) -> None:
        """As in ``Session``. Returns at once."""
        with self._changed:
            self._machine.call_anew()
            self._changed.notify_all()

    def push(self) -> None:
        """Send what is queued, unless another thread already does, without waiting for the network.

        For small messages: saves waking the sending thread.
        """
        with self._changed:
            pair = self._machine.live
            if pair is None or not self._is_resting or self._is_pushing:
                return
            self._is_pushing = True
        try:
            while output := self._next_pushed(pair):
                pair.sending.write_at_once(*output.parts)
        except Exception as error:
            with self._changed:
                self._is_pushing = False
            self._cut(pair, error)

    def wait_confirmed(self, most_bytes: int, is_off: Callable[[], bool]) -> None:
        """Wait until unconfirmed messages take at most ``most_bytes``, or ``is_off()``. For one thread.

        Checks ``is_off`` after each ``wake``.
        """
        with self._changed:
            self._is_awaited = True
            while self._machine.held_bytes > most_bytes and not (self._machine.is_over or is_off()):
                self._changed.wait()
            self._is_awaited = False

    def drop(self, floor: tuple[int, ...]) -> None:
        with self._changed:
            self._machine.drop(floor)

    def leave(self, problem: Problem, linger_s: float) -> None:
        """Send unconfirmed messages for at most ``linger_s``, then say goodbye. Returns at once."""
        with self._changed:
            self._machine.leave(problem, time.monotonic() + linger_s)
            self._changed.notify_all()

    def wait_over(self, limit_s: float) -> None:
        """Wait until the peer has read the goodbye, or can no longer read it."""
        machine, until_s = self._machine, time.monotonic() + limit_s
        with self._changed:
            while not machine.is_over and (now_s := time.monotonic()) < until_s:
                if machine.live is None and not machine.lingers(now_s):
                    return
                end_s = until_s if machine.live else min(until_s, machine.linger_until_s)
                self._changed.wait(end_s - now_s)

    def end(self) -> None:
        """Stop sending and receiving."""
        with self._changed:
            pair = self._machine.live
            self._machine.end()
            self._changed.notify_all()
        if pair:
            pair.end()
            self._user.disconnected()

    def join(self) -> None:
        """Call after ``end``, once new calls would fail."""
        with self._changed:
            callers = list(self._callers)
        for thread in (*self._threads, *callers):
            if thread.ident is not None:
                thread.join()

    def offer(self, pair: ConnectionPair, seen: int | None = None) -> None:
        """Offer a new pair, to be used or closed. ``seen``: the peer's, if it called. May wait
        ``BEGIN_S``."""
        try:
            begin = None if self._machine.leads else _begin(pair.receiving)
        except (OSError, MalformedFrame) as error:
            _log.debug("%s: a connection failed to begin: %s", self._name, error)
            pair.end()
            return
        with self._changed:
            before = self._machine.live
            is_taken = self._machine.offer(pair, time.monotonic(), seen=seen, begin=begin)
            self._changed.notify_all()
        if not is_taken:
            pair.end()
            return
        self._user.connected()
        if before:
            before.end()
            self._user.disconnected()

    # The threads

    def _call(self, seen: int) -> None:
        try:
            self.offer(self._user.call(seen))
        except OSError as error:
            _log.debug("%s: not reached: %s", self._name, error)
        except Exception as error:
            self._user.broke(error)
        with self._changed:
            self._machine.call_ended(time.monotonic())
            self._changed.notify_all()

    def _serve(self, direction: Direction) -> None:
        act = self._send if direction == "sending" else self._receive
        while pair := self._next_pair(direction):
            try:
                act(pair)
            except Exception as error:
                (self._cut if direction == "sending" else self._broken)(pair, error)
            finally:
                pair.stream(direction).end()

    def _next_pair(self, direction: Direction) -> ConnectionPair | None:
        """The live pair, once it differs from the one served last. None: the session is over."""
        with self._changed:
            while not self._machine.is_over:
                pair = self._machine.live
                if pair and direction not in pair.used:
                    pair.used.add(direction)
                    return pair
                self._wait()
            return None

    def _wait(self) -> None:
        """Call with the lock held. Waits until something is due or has happened."""
        self._call_if_due()
        now_s = time.monotonic()
        wait_s = self._machine.wait_s(now_s, sends=not self._is_pushing)
        self._next_check_s = math.inf if wait_s is None else now_s + wait_s
        self._changed.wait(wait_s)

    def _call_if_due(self) -> None:
        """Call with the lock held."""
        now_s = time.monotonic()
        if self._machine.call_is_due(now_s):
            caller = self._thread("call", self._call, self._machine.call())
            try:
                caller.start()
                self._callers = [each for each in self._callers if each.is_alive()] + [caller]
            except RuntimeError as error:
                _log.warning("%s: no thread to call with: %s", self._name, error)
                self._machine.call_ended(now_s)

    def _cut(self, pair: ConnectionPair, error: Exception) -> None:
        """Handle a failed send. The receiving thread first reads what has arrived, perhaps the peer's
        goodbye; then the pair is lost."""
        _log.debug("%s: sending failed: %s", self._name, error)
        with self._changed:
            if not pair.is_cut:
                pair.read_until_s = time.monotonic() + CUT_S
            self._machine.cut(pair)
            self._changed.notify_all()
        pair.sending.wake()  # not the receiving stream: on macOS, waking it discards received data
        self._user.disconnected()
        if not isinstance(error, OSError):
            self._user.broke(error)

    def _broken(self, pair: ConnectionPair, error: Exception) -> None:
        self._lost(pair, error)
        if not isinstance(error, OSError):
            self._user.broke(error)

    def _lost(self, pair: ConnectionPair, error: Exception) -> None:
        with self._changed:
            is_live = self._machine.lost(pair)
            self._changed.notify_all()
        if is_live:
            _log.info("%s: the connection is lost: %s", self._name, error)
            pair.end()
            self._user.disconnected()

    def _send(self, pair: ConnectionPair) -> None:
        while output := self._next_output(pair):
            pair.sending.write(*output.parts)

    def _next_output(self, pair: ConnectionPair) -> Output | None:
        """None: the pair is no longer the live one, and nobody writes to it."""
        with self._changed:
            while self._is_pushing or self._machine.live is pair:
                if not self._is_pushing:
                    if pair.sending.is_behind:
                        return Output(b"")
                    if output := self._machine.next(time.monotonic()):
                        return output
                self._is_resting = True
                self._wait()
                self._is_resting = False
            return None

    def _next_pushed(self, pair: ConnectionPair) -> Output | None:
        """None: nothing is queued, or the pair is no longer the live one. Others may send then."""
        with self._changed:
            now_s = time.monotonic()
            is_live, is_behind = self._machine.live is pair, pair.sending.is_behind
            if is_live and not is_behind and (output := self._machine.next(now_s)):
                return output
            self._is_pushing = False
            if is_behind or not is_live or self._next_check_s > now_s + ACK_S:
                self._changed.notify_all()
            return None

    def _receive(self, pair: ConnectionPair) -> None:
        silence_s = self._limits.alive_s * 2
        try:
            with self._changed:
                self._check_live(pair)
                self._changed.notify_all()
                self._machine.ready()
            arrivals = Arrivals(self._arrivals(pair), pair.receiving)
            self.turns.read(arrivals, silence_s, lambda: self._is_intact(pair))
        except (NotSent, MalformedFrame) as error:
            _log.warning("%s: %s", self._name, error)
            self.leave(self._user.given_up(error), 0.0)
            # Keep reading: the peer must be able to send until it has read the goodbye.
            pair.receiving.limit_silence(silence_s)
            while True:
                self._read_some(pair, self._discarded)

    def _is_intact(self, pair: ConnectionPair) -> bool:
        return self._machine.live is pair and not pair.is_cut

    def _check_live(self, pair: ConnectionPair) -> None:
        if self._machine.live is not pair:
            raise ConnectionError("another connection replaced it")

    def _arrivals(self, pair: ConnectionPair) -> Iterator[bool]:
        """Read until the peer says goodbye. As for ``Arrivals``."""
        header = memoryview(bytearray(frames.HEADER.size))
        body = memoryview(bytearray(frames.MAX_WORD_BYTES))
        while True:
            yield from self._fill(pair, header)
            kind, length = frames.read_header(header)
            if kind == frames.PIECE:
                yield from self._read_piece(pair, length)
                continue
            yield from self._fill(pair, body[:length])
            word = frames.decode(body[:length], frames.WORDS)
            with self._changed:
                self._check_live(pair)
                found = self._machine.receive(word)
                is_awaited = self._is_awaited or self._machine.is_leaving
                if isinstance(word, Begin) or (isinstance(word, Ack) and is_awaited):
                    self._changed.notify_all()
            match found:
                case MessageHead():
                    self._begin(pair, found)
                case Goodbye():
                    self._user.left(found.problem)
                    self.end()
                    return
            yield True

    def _fill(self, pair: ConnectionPair, into: memoryview) -> Iterator[bool]:
        at = 0
        while at < len(into):
            if got := self._read_some(pair, into[at:]):
                at += got
            else:
                yield False

    def _read_some(self, pair: ConnectionPair, into: memoryview) -> int:
        if time.monotonic() > pair.read_until_s:
            raise ConnectionError("sending failed")
        try:
            got = pair.receiving.read_some(into)
        except TimeoutError:
            # The sending thread may be stuck in a write: check here, too, whether another call is due.
            with self._changed:
                self._call_if_due()
            return 0
        self._machine.heard_s = time.monotonic()
        return got

    def _begin(self, pair: ConnectionPair, head: MessageHead) -> None:
        machine = self._machine
        machine.is_held = True
        try:
            self._room = self._user.announced(head.about, head.size, lambda: self._is_intact(pair))
        finally:
            machine.heard_s, machine.is_held = time.monotonic(), False
        if machine.begin(head):
            self._arrived()

    def _read_piece(self, pair: ConnectionPair, length: int) -> Iterator[bool]:
        self._check_live(pair)
        begin = self._machine.piece(length)
        end = begin + length
        yield from self._fill(pair, self._discarded[:length] if self._room is None else self._room[begin:end])
        # Even if another pair has taken over: pieces that the user counts as received must not be resent.
        if self._room is not None:
            self._user.came(end)
        is_whole = self._machine.came(length)
        if is_whole:
            self._arrived()
        # Only a borrowing thread has to be able to stop within a long message.
        if is_whole or self.turns.is_lent:
            yield True

    def _arrived(self) -> None:
        if self._machine.ack_is_due(time.monotonic()):
            with self._changed:
                self._changed.notify_all()
        room, self._room = self._room, None
        if room is not None:
            self._user.arrived()


def _begin(stream: Stream) -> Begin:
    stream.limit(time.monotonic() + BEGIN_S)
    word = frames.read(stream, frames.WORDS)
    stream.limit(None)
    if not isinstance(word, Begin):
        raise MalformedFrame("no beginning")
    return word
