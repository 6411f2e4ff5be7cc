"""The send queue of one link: in order, bounded, with only the newest telemetry. Pure.

While there is no connection, a newer step replaces an older one, and an overfull queue drops its oldest
messages among those that a budget would drop, too: steps and output.
"""

from __future__ import annotations

from collections import OrderedDict

from core.link import frames
from core.link.budgets import BUDGETS, kind_of
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.peer_messages import Message

LIMIT_BYTES = 8 << 20
"""Beyond this the peer does not keep up, and its link ends: this laptop's memory is not its buffer."""

AWAY_BYTES = 4 << 20
"""Beyond this, while there is no connection, steps and output are dropped."""


class Outbox:
    def __init__(self) -> None:
        self._waiting: OrderedDict[int, bytes] = OrderedDict()
        """Encoded messages by number, in order."""
        self._optional: OrderedDict[int, None] = OrderedDict()
        """The messages that may be dropped."""
        self._newest: dict[object, int] = {}
        """The newest message's number, by the key that messages replacing each other share."""
        self._count = 0
        self.waiting_bytes = 0

    def put(self, message: Message, *, is_away: bool = False) -> bool:
        """Queue a message. False: over the limit, nothing was added. Raises ``TandemError`` for a message
        that is too large.

        ``is_away``: there is no connection.
        """
        body = frames.body(message)
        replaces = _replaces(message, is_away)
        if replaces is not None:
            self._remove(self._newest.pop(replaces, 0))
        while is_away and self._optional and self.waiting_bytes + len(body) > AWAY_BYTES:
            self._remove(next(iter(self._optional)))
        if self.waiting_bytes + len(body) > LIMIT_BYTES:
            return False
        self._count += 1
        self._waiting[self._count] = body
        self.waiting_bytes += len(body)
        if replaces is not None:
            self._newest[replaces] = self._count
        if BUDGETS[kind_of(message)[0]].replaceable:
            self._optional[self._count] = None
        return True

    def pop(self) -> bytes | None:
        """The next message to send; None: the queue is empty."""
        return self._remove(next(iter(self._waiting))) if self._waiting else None

    def _remove(self, number: int) -> bytes | None:
        """The message, if it is still queued."""
        self._optional.pop(number, None)
        body = self._waiting.pop(number, None)
        self.waiting_bytes -= len(body or b"")
        return body


def _replaces(message: Message, is_away: bool) -> object:
    """A key shared by messages that replace each other; None: this one replaces none."""
    match message:
        case ms.TelemetrySent():
            return type(message)
        case ms.EventTold(event=ev.MemberProgressed() as event) if is_away:
            return type(event), event.run, event.device
        case ms.EventTold(event=ev.WaitingChanged() as waits) if is_away:
            return type(waits)
        case ms.StatusTold() if is_away:
            return type(message), message.run, message.task
    return None
