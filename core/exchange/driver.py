"""A member's end of the exchange: what the trainer calls, joined with the machine and the channels.

Everything here may be called from any thread. One lock guards the state; numbers are sent, received and added
in the channels' threads, outside of it.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from core.exchange import frames, machine, problems
from core.exchange.acceptor import Acceptor
from core.exchange.channel import Channel
from core.exchange.frames import MemberHello, MessageHead
from core.exchange.handshake import MemberConnection, Sockets
from core.exchange.keys import Keyring
from core.exchange.pack import Landing, Pack, call_for
from core.exchange.problems import ExchangeFailed
from core.exchange.send_window import Message
from core.exchange.state import (
    LIMITS,
    Add,
    Added,
    Address,
    Announced,
    Arrived,
    Calls,
    Closed,
    Complete,
    Effect,
    Event,
    Fail,
    Forget,
    HandedOver,
    Key,
    Kind,
    Left,
    Limits,
    PeerStatus,
    Regrouped,
    Send,
    State,
    Take,
    Taken,
    Waiting,
    Wire,
)
from core.vocabulary.errors import Problem

Array = npt.NDArray[Any]

INLINE_BYTES = 2**20
"""Handing over returns at once: what takes longer to add is left to another thread."""
GOODBYE_S = 3.0
"""So long a peer has to read the goodbye. One that is well needs a moment."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Peer:
    """``address``: None where it can't be called and calls itself. ``name``: of its laptop, for people."""

    rank: int
    address: Address | None
    name: str = ""


class Exchange:
    """Meets the other members of one run. ``run`` names it; ``listener`` is a listening socket, or None for a
    member that only calls; ``name`` is this laptop's. Close it, or its threads stay."""

    def __init__(
        self,
        rank: int,
        peers: Sequence[Peer],
        keyring: Keyring,
        run: str,
        listener: socket.socket | None,
        *,
        name: str = "",
        generation: int = 0,
        limits: Limits = LIMITS,
    ) -> None:
        members = len(peers) + 1
        self.rank, self.members = rank, members
        if {rank, *(peer.rank for peer in peers)} != set(range(members)) or keyring.members != members:
            raise problems.bad_pins("the members' ranks do not fit together")
        self._changed = threading.Condition()
        said = {rank: name, **{peer.rank: peer.name for peer in peers}}
        names = tuple(said[each] or f"member {each}" for each in range(members))
        self._state = State(rank=rank, members=members, names=names, floor=(generation, 0))
        self._packs: dict[Key, Pack] = {}
        self._over: dict[Key, Problem | None] = {}
        """Complete, or failed."""
        self._waits: dict[int, tuple[Sequence[Key], float]] = {}
        self._limits = limits
        self.ended = 0
        """So many waits have had their results."""
        self._sockets = Sockets()
        self._adding = ThreadPoolExecutor(1, thread_name_prefix="exchange-add")
        self._channels = {
            peer.rank: Channel(
                rank, peer.rank, names[peer.rank], peer.address, run, keyring, self._sockets, self, limits
            )
            for peer in peers
        }
        self._acceptor: Acceptor | None = None
        if listener is not None:
            hello = MemberHello(
                version=frames.VERSION, run=run, rank=rank, nonce=bytes(8), carries="from-caller"
            )
            hosts = {peer.rank: peer.address[0] for peer in peers if peer.address is not None}
            self._acceptor = Acceptor(
                listener, keyring, hello, self._sockets, self._on_connection, limits.handshake_s, hosts
            )

    def start(self) -> None:
        """Begin to meet the others. Returns at once; what is handed over waits for them."""
        if self._acceptor:
            self._acceptor.start()
        for channel in self._channels.values():
            channel.start()

    # What the trainer does

    def hand_over(
        self, key: Key, array: Array, *, kind: Kind = "sum", wire: Wire = "f32", word: str = ""
    ) -> None:
        """Bring this member's numbers to a meeting. Returns at once; ``array`` must not change any more.

        Raises ``TandemError`` for what does not travel. What else goes wrong, ``wait`` raises.
        """
        call = call_for(kind, array, wire, word)
        with self._changed:
            state, effects = machine.step(self._state, HandedOver(key, call))
            pack = self._packs.get(key)
            if key in state.meetings:
                pack = self._packs.setdefault(key, Pack(self.rank, self.members))
                pack.bring(array, call)
                self._changed.notify_all()  # a channel may wait for it with what came early
            later = self._take_on(state, effects)
        if later and pack and pack.early_bytes() > INLINE_BYTES:
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                self._adding.submit(self._add_apart, later)
        else:
            self._add(later)

    def wait(self, keys: Sequence[Key], limit_s: float | None = None) -> list[Any]:
        """The results in the order of ``keys``: an array for a sum, a list of arrays by rank for a gather;
        all are read-only. Raises ``ExchangeFailed``; ``TimeoutError`` after ``limit_s``, if any."""
        with self._changed:
            began_s = time.monotonic()
            number = id(wait := (keys, began_s))
            self._waits[number] = wait
            try:
                while not self._all_over(keys):
                    left_s = None if limit_s is None else began_s + limit_s - time.monotonic()
                    if left_s is not None and left_s <= 0:
                        raise TimeoutError(f"not everybody came within {limit_s:.0f} s")
                    self._changed.wait(left_s)
            finally:
                del self._waits[number]
            self.ended += 1
            packs = [self._packs[key] for key in keys]
            for key in keys:
                self._take_on(*machine.step(self._state, Taken(key)))
        return [pack.result() for pack in packs]

    def gather(self, key: Key, array: Array, *, word: str = "") -> list[Array]:
        """Everybody's arrays, by rank; their first dimensions may differ. Raises ``ExchangeFailed``."""
        self.hand_over(key, array, kind="gather", word=word)
        arrays: list[Array] = self.wait([key])[0]
        return arrays

    def regroup(self, generation: int, attempt: int) -> None:
        """Give up what was not met in earlier generations and attempts: who waits for it is told so."""
        self._on(Regrouped(generation, attempt))
        for channel in self._channels.values():
            channel.drop((generation, attempt))

    def waiting(self) -> list[Waiting]:
        """Of whom something is still needed by those who wait now; by rank. Quick, and for any thread."""
        with self._changed:
            state, waits, packs = self._state, list(self._waits.values()), dict(self._packs)
        now_s = time.monotonic()
        since_s = dict.fromkeys(self._channels, now_s)
        needs: set[int] = set()
        for keys, began_s in waits:
            for rank in {rank for key in keys for rank, _ in machine.missing(state, key)}:
                needs.add(rank)
                since_s[rank] = min(since_s[rank], began_s)
        wanted = {key for keys, _ in waits for key in keys if key in packs}
        found = []
        for rank in sorted(needs):
            progress = [packs[key].progress(rank) for key in wanted]
            status = self._channels[rank].status
            found.append(
                Waiting(
                    rank=rank,
                    since_s=now_s - since_s[rank],
                    bytes_come=sum(come for come, _ in progress),
                    bytes_total=sum(total for _, total in progress),
                    connection=status.connection,
                    heard_s=status.heard_s,
                )
            )
        return found

    def peers(self) -> list[PeerStatus]:
        """How it stands with each of the others, by rank."""
        return [self._channels[rank].status for rank in sorted(self._channels)]

    def absent(self) -> list[tuple[str, Calls]]:
        """Who is not connected at present: name, and how calling them went."""
        return [
            (self._state.name(peer.rank), peer.calls)
            for peer in self.peers()
            if peer.connection != "connected"
        ]

    @property
    def is_awaited(self) -> bool:
        """Another member has brought a pack to a meeting to which this one has not."""
        return any(meeting.call is None for meeting in self._state.meetings.values())

    @property
    def is_idle(self) -> bool:
        """Nothing is kept of any meeting, and the others have confirmed all that was sent to them."""
        with self._changed:
            if self._packs or self._over or self._state.meetings:
                return False
        return not any(peer.unconfirmed for peer in self.peers())

    def close(self, reason: Problem, linger_s: float = 0.0) -> None:
        """End every wait at once, tell the others why, and end all threads.

        ``linger_s``: at most so long the others still get what they have not confirmed.
        """
        self._on(Closed(reason))
        for channel in self._channels.values():
            channel.say_goodbye(reason, linger_s)
        until_s = time.monotonic() + linger_s + GOODBYE_S
        for channel in self._channels.values():
            channel.wait_over(max(0.0, until_s - time.monotonic()))
        for channel in self._channels.values():
            channel.end()
        self._sockets.close()
        if self._acceptor:
            self._acceptor.join()
        for channel in self._channels.values():
            channel.join()
        self._adding.shutdown(wait=True, cancel_futures=True)
        with self._changed:
            self._packs.clear()

    # What the channels' threads do

    def announced(self, rank: int, head: MessageHead, is_live: Callable[[], bool]) -> Landing | None:
        event = Announced(rank, head.key, head.phase, head.call)
        size = head.call.nbytes
        with self._changed:
            while True:
                state, effects = machine.step(self._state, event)
                takes = any(isinstance(effect, Take) for effect in effects)
                if not takes or self._has_room(state, rank, head.key, size):
                    break
                self._changed.wait(0.25)
                if not is_live():
                    raise ConnectionError("the session ended meanwhile")
            if takes:
                pack = self._packs.setdefault(head.key, Pack(self.rank, self.members))
            later = self._take_on(state, effects)
        self._add(later)
        return pack.land(rank, head.phase, head.call) if takes else None

    def came(self, rank: int, head: MessageHead) -> None:
        with self._changed:
            pack = self._packs.get(head.key)
        if pack:
            pack.take(rank, head.phase)

    def arrived(self, rank: int, head: MessageHead) -> None:
        self._on(Arrived(rank, head.key, head.phase))

    def left(self, rank: int, problem: Problem) -> None:
        _log.info("%s has left: %s", self._state.name(rank), problem.what)
        self._on(Left(rank, problem))

    def broke(self, error: Exception) -> None:
        _log.error("the exchange broke", exc_info=error)
        self._on(Closed(problems.broken(error)))

    def _on_connection(self, connection: MemberConnection) -> None:
        self._channels[connection.rank].called(connection)

    # State and effects

    def _on(self, event: Event) -> None:
        with self._changed:
            later = self._take_on(*machine.step(self._state, event))
        self._add(later)

    def _take_on(self, state: State, effects: Sequence[Effect]) -> list[Key]:
        """With the lock. Whose sums are to be added without it."""
        self._state = state
        later = []
        for effect in effects:
            match effect:
                case Send(rank, key, phase):
                    # Before anybody learns that the meeting is complete, takes its result, and closes.
                    call = state.meetings[key].call
                    assert call is not None
                    payload = self._packs[key].payload(rank, phase)
                    self._channels[rank].put(Message(key, phase, call, payload))
                case Complete(key):
                    self._over[key] = None
                case Fail(key, problem):
                    self._packs.pop(key, None)
                    self._over[key] = problem
                case Forget(key):
                    self._packs.pop(key, None)
                    self._over.pop(key, None)
                case Add(key):
                    later.append(key)
                case Take():
                    pass
        # Not for every piece of news: who waits needs the interpreter to look.
        if any(isinstance(effect, Complete | Fail | Forget) for effect in effects):
            self._changed.notify_all()
        return later

    def _add(self, keys: Sequence[Key]) -> None:
        for key in keys:
            with self._changed:
                pack = self._packs.get(key)
            if pack:
                pack.advance()
                self._on(Added(key))

    def _add_apart(self, keys: Sequence[Key]) -> None:
        try:
            self._add(keys)
        except Exception as error:
            self.broke(error)

    def _all_over(self, keys: Sequence[Key]) -> bool:
        """Raises ``ExchangeFailed`` for the first that failed, ``KeyError`` for one that nobody brought."""
        for key in keys:
            if problem := self._over.get(key):
                raise ExchangeFailed(problem)
            if key[:2] < self._state.floor:
                raise ExchangeFailed(problems.old(key, self._state.floor))
            meeting = self._state.meetings.get(key)
            if meeting is None or meeting.call is None:
                raise KeyError(f"{key} was not handed over")
        return all(key in self._over for key in keys)

    def _has_room(self, state: State, rank: int, key: Key, size: int) -> bool:
        meeting = state.meetings[key]
        if meeting.call is not None:
            return True
        early = [
            pack.progress(rank)[1]
            for other, pack in self._packs.items()
            if (known := state.meetings.get(other))
            and known.call is None
            and (rank, "part") in known.announced
        ]
        return len(early) < self._limits.early_meetings and sum(early) + size <= self._limits.early_bytes
