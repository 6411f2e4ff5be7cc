"""One peer's end of a session: what to send, what to expect, when to call. No I/O, no clock, no thread.

A driver calls it with the time (any monotonic clock, seconds), from one thread at a time. The methods that
only the receiving side uses need no lock where a single thread receives: ``begin``, ``piece``, ``came``, and
the public attributes. Connections may be any objects; they are only compared.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from core.session import frames
from core.session.frames import PIECE_BYTES, Ack, Alive, Begin, Goodbye, MalformedFrame, MessageHead, Word
from core.session.state import Message, Output, SessionLimits
from core.session.window import SendWindow
from core.vocabulary.errors import Problem

C = TypeVar("C")

ACK_S = 0.25
"""How long a confirmation may wait to be sent with other output."""
REDIAL_S = (0.05, 5.0)
"""Pause after a failed call: the first, doubled each time up to the last."""
FOLLOWER_S = 0.3
"""Delay of the follower's first call, to let the leader call first."""
RECORD_BYTES = 2**14
"""Each frame takes at least one TLS record, which wears the keys as much as a full one."""


class Session(Generic[C]):
    """``leads``: this side numbers the connections. ``can_call``: it knows the peer's address."""

    def __init__(self, *, leads: bool, can_call: bool, limits: SessionLimits, now_s: float) -> None:
        self.leads = leads
        self.live: C | None = None
        """The connection that counts."""
        self.number = 0
        """The number of the newest connection."""
        self.is_over = False
        self.heard_s = now_s
        """Set by the driver whenever bytes arrive."""
        self.is_held = False
        """Set by the driver while it does not read: the silence is then not the peer's."""
        self._limits, self._can_call = limits, can_call
        self._calls, self._most_calls, self._pause_s = 0, 1, REDIAL_S[0]
        self._call_s = now_s if leads else now_s + FOLLOWER_S
        self._theirs: Begin | None = None
        self._is_ready = self._is_begun = self._is_resumed = False
        self._window = SendWindow()
        self._last_sent_s = now_s
        self._sent_bytes = self._received_bytes = 0
        """Over the present connection."""
        self._expected, self._received = 0, 0
        """The next or current message, and how many of its bytes have arrived in whole pieces."""
        self._confirmed, self._unacked_bytes = 0, 0
        self._incoming: MessageHead | None = None
        self._goodbye: Goodbye | None = None
        self.linger_until_s = 0.0
        self._is_goodbye_sent = False

    # The user's side

    def put(self, message: Message) -> None:
        if not self.is_over:
            self._window.put(message)

    def drop(self, floor: tuple[int, ...]) -> None:
        """Forget messages with keys below ``floor`` unless their sending has begun."""
        self._window.drop(floor)

    def leave(self, problem: Problem, until_s: float) -> None:
        """Say goodbye once the peer has confirmed everything, at ``until_s`` at the latest."""
        if self._goodbye is None:
            self._goodbye, self.linger_until_s = frames.goodbye(problem), until_s

    def end(self) -> None:
        """Stop sending and receiving."""
        self.is_over, self.live, self._window = True, None, SendWindow()

    @property
    def unconfirmed(self) -> int:
        return len(self._window)

    @property
    def held_bytes(self) -> int:
        """Bytes of the unconfirmed messages."""
        return self._window.held_bytes

    @property
    def is_flowing(self) -> bool:
        """Whether a message could be sent at once."""
        return self.live is not None and self._is_resumed and not self._is_goodbye_sent

    @property
    def is_leaving(self) -> bool:
        return self._goodbye is not None

    @property
    def has_left(self) -> bool:
        return self.is_over or self._is_goodbye_sent

    def lingers(self, now_s: float) -> bool:
        return now_s < self.linger_until_s and len(self._window) > 0

    def silent_s(self, now_s: float) -> float:
        """Seconds since anything arrived."""
        return 0.0 if self.is_held else max(0.0, now_s - self.heard_s)

    # Calls

    def call_is_due(self, now_s: float) -> bool:
        return (
            self._can_call
            and not (self._has_called or self.is_over or self._is_goodbye_sent)
            and now_s >= self._call_s
            and self.needs_another(now_s)
        )

    def call(self) -> int:
        """Begin a call, which ``call_ended`` must end. Returns the ``seen`` to send to the peer."""
        self._calls += 1
        return self.number

    def call_ended(self, now_s: float) -> None:
        self._calls -= 1
        self._most_calls = 1 if self._calls == 0 else self._most_calls
        self._call_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, REDIAL_S[1])

    def call_anew(self) -> None:
        """The peer can be reached now: call without a pause, even beside a call under way, which may have
        begun too early."""
        self._most_calls = min(self._calls + 1, 2)
        self._pause_s, self._call_s = REDIAL_S[0], 0.0

    @property
    def _has_called(self) -> bool:
        return self._calls >= self._most_calls

    def needs_another(self, now_s: float) -> bool:
        """Whether another connection is needed: there is no live one, or it is silent, or its keys are worn.
        The live one stays until it is replaced."""
        return (
            self.live is None
            or self.silent_s(now_s) > self._limits.silent_s
            or max(self._sent_bytes, self._received_bytes) > self._limits.worn_bytes
        )

    # Connections

    def offer(
        self,
        connection: C,
        now_s: float,
        *,
        seen: int | None = None,
        begin: Begin | None = None,
        number: int | None = None,
    ) -> bool:
        """Offer a new connection. Returns whether it becomes the live one; if not, the caller closes it.

        ``seen``: what the peer sent when it called. ``begin``: the leader's first word, which the follower
        must wait for. ``number``: the connection's, where the leader has sent it before any word.
        """
        number = begin.session if begin else number
        is_wanted = self._is_wanted(now_s, seen) if number is None else number > self.number
        if self.is_over or not is_wanted:
            return False
        self.live, self.number = connection, self.number + 1 if number is None else number
        self._theirs = begin
        self._is_ready = self._is_begun = self._is_resumed = self._is_goodbye_sent = False
        self._sent_bytes = self._received_bytes = 0
        self.heard_s = self._last_sent_s = now_s
        return True

    def _is_wanted(self, now_s: float, seen: int | None) -> bool:
        if not self.leads:
            return False
        # A peer that calls although it knew of the live connection has lost it. Otherwise the calls crossed.
        return self.needs_another(now_s) or (seen is not None and seen >= self.number)

    def ready(self) -> None:
        """Everything from earlier connections is counted, and the live one is read from now on.

        Raises ``NotSent``.
        """
        self._is_ready = True
        if self._theirs:
            self._resume(self._theirs)

    def _resume(self, begin: Begin) -> None:
        self._window.resume(begin.message, begin.bytes)
        self._is_resumed = True
        self._pause_s, self._call_s = REDIAL_S[0], 0.0

    def cut(self, connection: C) -> None:
        """Stop sending over a connection that failed. The driver reads what has arrived, then calls
        ``lost``."""
        if self.live is connection:
            self._is_ready = False

    def lost(self, connection: C) -> bool:
        """Handle a broken connection. Returns whether it was the live one."""
        if self.live is not connection:
            return False
        self.live = None
        if self._is_goodbye_sent:
            self.end()
        return True

    # Out

    def next(self, now_s: float) -> Output | None:
        """The next output for the live connection."""
        if not self._is_ready or self.live is None or self._is_goodbye_sent:
            return None
        framed, piece = b"", None
        is_cut = self._goodbye is not None and now_s >= self.linger_until_s
        if not self._is_begun:
            self._is_begun, self._confirmed, self._unacked_bytes = True, self._expected, 0
            framed += frames.encode(Begin(session=self.number, message=self._expected, bytes=self._received))
        if self._is_resumed and not is_cut:
            piece = self._window.next()
        if self._is_resumed and self._confirmed != self._expected and (piece or self.ack_is_due(now_s)):
            self._confirmed, self._unacked_bytes = self._expected, 0
            framed += frames.encode(Ack(message=self._expected))
        if piece and piece.needs_head:
            message = piece.message
            head = MessageHead(
                message=piece.number, offset=piece.begin, size=message.size, about=message.about
            )
            framed += frames.encode(head)
        if piece and piece.end > piece.begin:
            framed += frames.piece_header(piece.end - piece.begin)
            self._sent_bytes += piece.end - piece.begin
        if piece is None and self._goodbye and (is_cut or not self._window):
            self._is_goodbye_sent = True
            framed += frames.encode(self._goodbye)
        if not framed and piece is None and now_s - self._last_sent_s >= self._limits.alive_s:
            framed = frames.encode(Alive())
        if not framed and piece is None:
            return None
        self._sent_bytes += max(len(framed), RECORD_BYTES)
        self._last_sent_s = now_s
        return Output(framed, piece)

    def ack_is_due(self, now_s: float) -> bool:
        is_late = now_s - self._last_sent_s >= ACK_S or self._unacked_bytes >= self._limits.ack_bytes
        return self._confirmed != self._expected and is_late

    def wait_s(self, now_s: float, *, sends: bool = True) -> float | None:
        """Seconds until something is due; None: nothing is, until an event occurs. ``sends``: include
        sending."""
        due_s = []
        if sends and self.live is not None and self._is_ready and not self._is_goodbye_sent:
            is_fresh = now_s - self._last_sent_s < ACK_S < self._limits.alive_s
            due_s.append(self._last_sent_s + (ACK_S if is_fresh else self._limits.alive_s))
            if self._goodbye:
                due_s.append(self.linger_until_s)
        if self._can_call and not (self._has_called or self.is_held or self._is_goodbye_sent):
            silent_s = now_s if self.live is None else self.heard_s + self._limits.silent_s
            due_s.append(max(self._call_s, silent_s))
        return max(0.0, min(due_s) - now_s) if due_s else None

    # In

    def receive(self, word: Word) -> MessageHead | Goodbye | None:
        """Handle a word from the live connection. Returns the head of a new message, for which the driver
        calls ``begin``, or the peer's goodbye.

        Raises ``MalformedFrame``, ``NotSent``.
        """
        self._received_bytes += RECORD_BYTES
        match word:
            case Begin(session=number) if not self._is_resumed and number == self.number:
                self._resume(word)
            case _ if not self._is_resumed:
                raise MalformedFrame(f"{type(word).__name__} before the answer to Begin")
            case Alive():
                pass
            case Ack(message):
                self._window.confirm(message)
            case MessageHead():
                return self._head(word)
            case Goodbye():
                return word
            case _:
                raise MalformedFrame(f"{type(word).__name__} within a session")
        return None

    def _head(self, head: MessageHead) -> MessageHead | None:
        incoming = self._incoming
        if (head.message, head.offset) != (self._expected, self._received):
            raise MalformedFrame(
                f"message {head.message} from byte {head.offset}; message {self._expected} is expected"
            )
        if incoming is None:
            return head
        if (incoming.size, incoming.about) != (head.size, head.about):
            raise MalformedFrame(f"message {head.message} changed since its first head")
        return None

    def begin(self, head: MessageHead) -> bool:
        """Begin a new message, for which there is a buffer. Returns whether it is complete: it has no
        bytes."""
        self._incoming = head
        return self._is_whole(head)

    def piece(self, length: int) -> int:
        """A piece follows. Returns the offset of its first byte in the message. Raises ``MalformedFrame``."""
        incoming = self._incoming
        if incoming is None or length != min(PIECE_BYTES, incoming.size - self._received):
            raise MalformedFrame(f"an unexpected piece of {length} bytes")
        return self._received

    def came(self, length: int) -> bool:
        """Count a whole piece as received: it won't be requested again. Returns whether the message is
        complete."""
        incoming = self._incoming
        assert incoming is not None
        self._received += length
        self._received_bytes += length
        self._unacked_bytes += length
        return self._is_whole(incoming)

    def _is_whole(self, incoming: MessageHead) -> bool:
        if self._received < incoming.size:
            return False
        self._incoming, self._expected, self._received = None, self._expected + 1, 0
        return True
