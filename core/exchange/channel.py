"""All that goes to and comes from one peer, over as many connections as it takes.

A *session* is a pair of connections, one per direction (an SSL object is not for two threads), with a thread
each. When either breaks, the session is over and both sides dial anew; what a peer has not confirmed is sent
again from where it stopped. Which of several sessions counts, the lower rank decides alone and numbers it;
the other follows the highest number. So crossing calls and half-dead connections end in one and the same.
"""

from __future__ import annotations

import logging
import os
import threading
import time

from core.exchange import duplex, frames, handshake, problems, reach
from core.exchange.duplex import Session
from core.exchange.frames import Ack, Alive, Begin, Goodbye, MalformedFrame, MemberHello
from core.exchange.handshake import MemberConnection, Sockets
from core.exchange.inbox import Inbox, Owner
from core.exchange.keys import Keyring
from core.exchange.send_window import Message, NotSent, SendWindow
from core.exchange.state import Address, Calls, Key, Limits, PeerStatus
from core.vocabulary.errors import Problem

BEGIN_S = 10.0
IDLE_S = 0.25
"""A confirmation waits at most so long for something that it can travel with."""
REDIAL_S = (0.05, 5.0)
"""Between attempts: the first pause, which doubles until the last."""
FOLLOWER_S = 0.3
"""The higher rank leaves the lower one the first call."""
_HALVES = 4

_log = logging.getLogger(__name__)


class Channel:
    def __init__(
        self,
        own_rank: int,
        rank: int,
        name: str,
        address: Address | None,
        run: str,
        keyring: Keyring,
        sockets: Sockets,
        owner: Owner,
        limits: Limits,
    ) -> None:
        """``name``: of the peer's laptop. ``address`` None: it can't be called, it calls."""
        self.rank, self._name = rank, name
        self._own_rank, self._address, self._run = own_rank, address, run
        self._keyring, self._sockets, self._owner, self._limits = keyring, sockets, owner, limits
        self._leads = own_rank < rank
        lock = threading.RLock()
        self._changed, self._to_send = threading.Condition(lock), threading.Condition(lock)
        """The second for the sender alone: it is woken for every message."""
        self._session: Session | None = None
        self._last: Session | None = None
        self._number = 0
        self._halves: dict[bytes, MemberConnection] = {}
        self._calls = Calls(address)
        self._is_over = False
        self._goodbye: Goodbye | None = None
        self._is_goodbye_sent = False
        self._linger_until_s = 0.0
        self._window = SendWindow()
        self._inbox = Inbox(own_rank, rank, keyring.members, owner)
        self._confirmed = 0
        """The peer was told that all messages before this one came."""
        self._dialler = threading.Thread(target=self._run_dialler, name=f"exchange-dial-{rank}", daemon=True)

    # What the owner does with it

    def start(self) -> None:
        self._dialler.start()

    def put(self, message: Message) -> None:
        with self._changed:
            if not self._is_over:
                self._window.put(message)
                self._to_send.notify_all()

    def drop(self, floor: tuple[int, int]) -> None:
        """Do not begin to send what is of an earlier (generation, attempt)."""

        def is_old(key: Key) -> bool:
            return key[:2] < floor

        with self._changed:
            self._window.drop(is_old)

    @property
    def status(self) -> PeerStatus:
        with self._changed:
            is_closed = self._is_over or self._is_goodbye_sent
            return PeerStatus(
                rank=self.rank,
                connection="closed" if is_closed else "connected" if self._session else "dialling",
                session=self._number,
                heard_s=self._inbox.silent_s,
                unconfirmed=len(self._window),
                calls=self._calls,
            )

    def is_live(self, session: Session) -> bool:
        return self._session is session and not self._is_over

    def say_goodbye(self, problem: Problem, linger_s: float) -> None:
        """Send what was not confirmed yet, for at most ``linger_s``, then the goodbye. Returns at once."""
        with self._changed:
            if self._goodbye is None:
                self._goodbye = frames.goodbye(problem)
                self._linger_until_s = time.monotonic() + linger_s
            self._wake_all()

    def wait_over(self, limit_s: float) -> None:
        """Until the peer has read the goodbye, or can't."""
        until_s = time.monotonic() + limit_s
        with self._changed:
            while not self._is_over:
                now_s = time.monotonic()
                lingers = now_s < self._linger_until_s and len(self._window) > 0
                if now_s >= until_s or (self._session is None and not lingers):
                    return
                self._changed.wait(min(0.1, until_s - now_s))

    def end(self) -> None:
        """Nothing goes and nothing comes any more."""
        with self._changed:
            self._is_over = True
            halves, self._halves = self._halves, {}
            session, self._session = self._session, None
            self._window = SendWindow()
            self._wake_all()
        for half in halves.values():
            self._sockets.end(half.stream.sock)
        if session:
            session.wake()

    def join(self) -> None:
        """After ``end`` and when all sockets were closed."""
        if self._dialler.ident is not None:
            self._dialler.join()
        # The sender waits for what was before it, and adds its receiver.
        at = 0
        while self._last and at < len(self._last.threads):
            self._last.threads[at].join()
            at += 1

    # Calls

    def called(self, connection: MemberConnection) -> None:
        """The peer called; its second connection makes a session. May wait, at most ``BEGIN_S``."""
        stale = None
        with self._changed:
            other = self._halves.pop(connection.hello.nonce, None)
            if self._is_over:
                stale = connection
            elif other is None:
                if len(self._halves) >= _HALVES:
                    stale = self._halves.pop(next(iter(self._halves)))
                self._halves[connection.hello.nonce] = connection
        if stale:
            self._sockets.end(stale.stream.sock)
        if other is None or stale:
            return
        if {other.hello.carries, connection.hello.carries} != {"from-caller", "to-caller"}:
            self._sockets.end(other.stream.sock)
            self._sockets.end(connection.stream.sock)
            return
        sending, receiving = (
            (connection, other) if connection.hello.carries == "to-caller" else (other, connection)
        )
        self._offer(Session(sending.stream, receiving.stream, seen=connection.hello.seen))

    def _run_dialler(self) -> None:
        try:
            self._dial()
        except Exception as error:
            self._owner.broke(error)

    def _dial(self) -> None:
        pause_s = REDIAL_S[0]
        if not self._leads:
            self._sockets.wait_closed(FOLLOWER_S)
        while True:
            with self._changed:
                while not self._is_over and not self._needs_another():
                    pause_s = REDIAL_S[0]
                    self._changed.wait(self._limits.silent_s / 5)
                if self._is_over or self._address is None:
                    return
            try:
                self._offer(self._call(self._address))
            except OSError as error:
                _log.debug("%s can't be reached: %s", self._name, error)
                with self._changed:
                    self._calls = reach.failed(self._calls, error, time.monotonic())
            with self._changed:
                if self._needs_another():
                    self._changed.wait_for(lambda: self._is_over, pause_s)
            pause_s = min(2 * pause_s, REDIAL_S[1])

    def _call(self, address: Address) -> Session:
        hello = MemberHello(
            version=frames.VERSION,
            run=self._run,
            rank=self._own_rank,
            nonce=os.urandom(8),
            carries="from-caller",
            seen=self._number,
        )
        return duplex.dial(address, self.rank, self._keyring, hello, self._sockets, self._limits.handshake_s)

    def _needs_another(self) -> bool:
        """The session that lives, if any, should be replaced; it goes on till then."""
        session = self._session
        return (
            session is None
            or self._inbox.silent_s > self._limits.silent_s
            or session.worn_bytes > self._limits.worn_bytes
        )

    def _offer(self, session: Session) -> None:
        """A session that could be: taken or closed."""
        try:
            if not self._leads:
                session.receiving.limit(time.monotonic() + BEGIN_S)
                word = handshake.read_word(session.receiving)
                session.receiving.limit(None)
                if not isinstance(word, Begin):
                    raise MalformedFrame("no beginning")
                session.begin = word
        except (OSError, MalformedFrame) as error:
            _log.debug("a session with %s did not begin: %s", self._name, error)
            self._sockets.end(session.sending.sock)
            self._sockets.end(session.receiving.sock)
            return
        with self._changed:
            before = self._session
            is_taken = not self._is_over and self._is_wanted(session, before)
            if is_taken:
                self._number = session.number = session.begin.session if session.begin else self._number + 1
                self._session, previous, self._last = session, self._last, session
                self._calls = Calls(self._address)
                self._inbox.hear()
                sender = threading.Thread(
                    target=self._run_session,
                    args=(session, previous),
                    name=f"exchange-send-{self.rank}",
                    daemon=True,
                )
                session.threads.append(sender)
                sender.start()
            self._wake_all()
        if not is_taken:
            self._sockets.end(session.sending.sock)
            self._sockets.end(session.receiving.sock)
        elif before:
            before.wake()

    def _is_wanted(self, session: Session, live: Session | None) -> bool:
        if session.begin:
            return session.begin.session > self._number
        if live is None or self._needs_another():
            return True
        # A peer that calls although it knew of the present session has lost it. Else the calls crossed.
        return session.seen is not None and session.seen >= live.number

    # A session

    def _run_session(self, session: Session, previous: Session | None) -> None:
        try:
            # What has come is known only when nobody writes to it any more.
            for thread in previous.threads if previous else []:
                thread.join()
            receiver = threading.Thread(
                target=self._run_receiver,
                args=(session,),
                name=f"exchange-receive-{self.rank}",
                daemon=True,
            )
            inbox = self._inbox
            begin = Begin(session=session.number, message=inbox.expected, bytes=inbox.received)
            with self._changed:
                session.threads.append(receiver)
                self._confirmed = inbox.expected
                receiver.start()
            session.sending.write(frames.encode(begin))
            self._send(session)
        except OSError as error:
            self._lost(session, error)
        except Exception as error:
            self._lost(session, error)
            self._owner.broke(error)
        finally:
            self._sockets.end(session.sending.sock)

    def _send(self, session: Session) -> None:
        said_s = time.monotonic()
        while True:
            words, is_last = b"", False
            with self._changed:
                if not self.is_live(session):
                    return
                now_s = time.monotonic()
                is_cut = self._goodbye is not None and now_s >= self._linger_until_s
                piece = self._window.next() if session.is_resumed and not is_cut else None
                if piece is None and self._goodbye and (is_cut or not self._window):
                    words, is_last = frames.encode(self._goodbye), True
                elif self._confirmed != self._inbox.expected and session.is_resumed:
                    words = frames.encode(Ack(message=self._inbox.expected))
                    self._confirmed = self._inbox.expected
                elif piece is None and now_s - said_s >= self._limits.alive_s:
                    words = frames.encode(Alive())
                elif piece is None:
                    self._to_send.wait(IDLE_S)
                    continue
            duplex.write_piece(session.sending, words, piece)
            said_s = now_s
            if is_last:
                # We go on reading: the peer would find its own sending broken, maybe before it has read this.
                with self._changed:
                    self._is_goodbye_sent = True
                return

    def _run_receiver(self, session: Session) -> None:
        try:
            begin = session.begin or handshake.read_word(session.receiving)
            if not isinstance(begin, Begin) or begin.session != session.number:
                raise MalformedFrame("no answer to the beginning")
            with self._changed:
                if self.is_live(session):
                    self._window.resume(begin.message, begin.bytes)
                    session.is_resumed = True
                self._wake_all()
            goodbye = self._inbox.read(session.receiving, lambda: self.is_live(session), self._on_ack)
            self._owner.left(self.rank, goodbye.problem)
            self.end()
        except (NotSent, MalformedFrame) as error:
            _log.warning("%s: %s", self._name, error)
            self._leave(
                problems.restarted(self._name)
                if isinstance(error, NotSent)
                else problems.incomprehensible(self._name, str(error))
            )
            self._drain(session)
        except OSError as error:
            self._lost(session, error)
        except Exception as error:
            self._lost(session, error)
            self._owner.broke(error)
        finally:
            self._sockets.end(session.receiving.sock)

    def _drain(self, session: Session) -> None:
        """Read on, so that the peer reads our goodbye, but take nothing."""
        nowhere = memoryview(bytearray(frames.PIECE_BYTES))
        try:
            while True:
                session.receiving.read_some(nowhere)
        except OSError as error:
            self._lost(session, error)

    def _on_ack(self, message: int) -> None:
        with self._changed:
            if self._is_over:
                return
            self._window.confirm(message)
            if not self._window and self._goodbye:
                self._wake_all()

    def _wake_all(self) -> None:
        self._changed.notify_all()
        self._to_send.notify_all()

    def _lost(self, session: Session, error: Exception) -> None:
        with self._changed:
            if self._session is session:
                self._session = None
                _log.info("the connection to %s is lost: %s", self._name, error)
            is_last = self._is_goodbye_sent
            self._wake_all()
        session.wake()
        if is_last:
            self.end()

    def _leave(self, problem: Problem) -> None:
        """This peer can't be listened to any more: tell it so, and the owner."""
        self._owner.left(self.rank, problem)
        self.say_goodbye(problem, 0.0)
