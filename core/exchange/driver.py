"""A member's end of the exchange: the trainer's interface, joined with the machine and the channels.

All methods are thread-safe. One lock guards the state; numbers are sent, received and added in the channels'
threads, outside the lock.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy.typing as npt

from core.exchange import frames, machine, problems, waits
from core.exchange.acceptor import Acceptor
from core.exchange.channel import Channel
from core.exchange.frames import MemberHello, PackHead
from core.exchange.handshake import MemberConnection
from core.exchange.keys import Keyring
from core.exchange.pack import Landing, Pack, call_for, has_room
from core.exchange.problems import ExchangeFailed
from core.exchange.state import (
    LIMITS,
    Add,
    Added,
    Announced,
    Arrived,
    Calls,
    Closed,
    Complete,
    Discard,
    Effect,
    Event,
    Fail,
    HandedOver,
    Key,
    Kind,
    Left,
    Limits,
    Peer,
    PeerStatus,
    Regrouped,
    Send,
    State,
    Take,
    Taken,
    Waiting,
    Wire,
    message_bytes,
)
from core.net.tls_stream import Sockets
from core.session.frames import MalformedFrame
from core.vocabulary.errors import Problem

Array = npt.NDArray[Any]

INLINE_BYTES = 2**20
"""Most bytes that ``hand_over`` adds itself, since it must return quickly; another thread adds larger
packs."""
PUSHED_BYTES = 2**18
"""Most bytes that ``hand_over`` sends itself; another thread sends larger packs."""
GOODBYE_S = 3.0
"""How long a peer has to read the goodbye. A healthy one needs a moment."""

_log = logging.getLogger(__name__)


class Exchange:
    """Connects one member of a run with the others. ``run``: its name; ``listener``: a listening socket, or
    None for a member that only calls; ``name``: this laptop's. Close it, or its threads stay."""

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
            raise problems.bad_pins("the members' ranks don't match")
        self._changed = threading.Condition()
        by_rank = {rank: name, **{peer.rank: peer.name for peer in peers}}
        names = tuple(by_rank[each] or f"member {each}" for each in range(members))
        self._state = State(rank=rank, members=members, names=names, floor=(generation, 0))
        self._packs: dict[Key, Pack] = {}
        self._over: dict[Key, Problem | None] = {}
        """Finished meetings: None for complete ones, the problem for failed ones."""
        self._waits: dict[int, waits.Wait] = {}
        self._wait_numbers = count()
        self._limits = limits
        self.ended = 0
        """Number of waits that have returned results."""
        self._missed: list[threading.Timer] = []
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
        """Begin to connect to the others. Returns at once; arrays handed over wait for the connections."""
        if self._acceptor:
            self._acceptor.start()
        for channel in self._channels.values():
            channel.session.start()

    # The trainer's side

    def hand_over(
        self, key: Key, array: Array, *, kind: Kind = "sum", wire: Wire = "f32", label: str = ""
    ) -> None:
        """Contribute this member's array to a meeting. Returns at once; ``array`` must not change afterwards.

        Raises ``TandemError`` for an array that can't be sent. ``wait`` raises all other errors.
        """
        call = call_for(kind, array, wire, label)
        with self._changed:
            state, effects = machine.step(self._state, HandedOver(key, call))
            pack = self._packs.get(key)
            if key in state.meetings:
                pack = self._packs.setdefault(key, Pack(self.rank, state.present))
                pack.bring(array, call)
                self._changed.notify_all()  # a channel may hold a message that arrived early
            later = self._apply(state, effects)
        for effect in effects:
            if isinstance(effect, Send):
                session = self._channels[effect.rank].session
                if call.nbytes <= PUSHED_BYTES:
                    session.push()
                else:
                    session.wake()
        if later and pack and pack.early_bytes() > INLINE_BYTES:
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                self._adding.submit(self._add_in_background, later)
        else:
            self._add(later)

    def wait(self, keys: Sequence[Key], limit_s: float | None = None) -> list[Any]:
        """The results in the order of ``keys``: an array for a sum, a list of arrays by rank for a gather;
        all are read-only. Raises ``ExchangeFailed``; ``TimeoutError`` after ``limit_s``, if any."""
        began_s = time.monotonic()
        until_s = None if limit_s is None else began_s + limit_s
        number = next(self._wait_numbers)
        with self._changed:
            self._waits[number] = keys, began_s
            only = len(self._waits) == 1
            turns = waits.turns_of(keys, self._state, self._channels.values(), is_only=only)

        def has_come() -> bool:
            return number not in self._waits or all(key in self._over for key in keys)

        try:
            if turns:
                turns.take(has_come, until_s)
            with self._changed:
                while not self._all_over(keys):
                    left_s = None if until_s is None else until_s - time.monotonic()
                    if left_s is not None and left_s <= 0:
                        raise TimeoutError(f"not everybody arrived within {limit_s:.0f} s")
                    self._changed.wait(left_s)
                self.ended += 1
                packs = [self._packs[key] for key in keys]
                del self._waits[number]
                for key in keys:
                    self._apply(*machine.step(self._state, Taken(key)))
        finally:
            with self._changed:
                self._waits.pop(number, None)
            if turns:
                turns.give_back()
        return [pack.result() for pack in packs]

    def gather(self, key: Key, array: Array, *, label: str = "") -> list[Array]:
        """All members' arrays, by rank; their first dimensions may differ. Raises ``ExchangeFailed``."""
        self.hand_over(key, array, kind="gather", label=label)
        arrays: list[Array] = self.wait([key])[0]
        return arrays

    def regroup(self, generation: int, attempt: int, gone: Collection[int] = ()) -> None:
        """Give up unfinished meetings of earlier generations and attempts; their waits fail.

        ``gone``: ranks that no longer take part, in addition to those of earlier calls.
        """
        self._on(Regrouped(generation, attempt, frozenset(gone)))
        for rank, channel in self._channels.items():
            channel.session.drop((generation, attempt))
            if rank in gone:
                channel.end()

        self.disconnected()  # early messages of this generation can be received now

    @property
    def membership(self) -> tuple[int, tuple[int, ...]]:
        """The newest generation, and the ranks of its members, including this one's."""
        state = self._state
        return state.floor[0], state.present

    def waiting(self) -> list[Waiting]:
        """Members that current waits still need something from, by rank. Quick and thread-safe."""
        with self._changed:
            state, under_way, packs = self._state, list(self._waits.values()), dict(self._packs)
        return waits.awaited(state, under_way, packs, self._channels)

    def peers(self) -> list[PeerStatus]:
        """The status of each other member, by rank."""
        return [self._channels[rank].status for rank in machine.others(self._state)]

    def absent(self) -> list[tuple[str, Calls]]:
        """Members that are not connected at present: their names, and how calling them went."""
        away = [peer for peer in self.peers() if peer.connection != "connected"]
        return [(self._state.name(peer.rank), peer.calls) for peer in away]

    @property
    def is_awaited(self) -> bool:
        """Whether another member has brought a pack to a meeting before this one."""
        return any(meeting.call is None for meeting in self._state.meetings.values())

    @property
    def is_idle(self) -> bool:
        """Whether no meeting is kept, and the others have confirmed everything sent to them."""
        with self._changed:
            if self._packs or self._over or self._state.meetings:
                return False
        return not any(peer.unconfirmed for peer in self.peers())

    def close(self, reason: Problem, linger_s: float = 0.0) -> None:
        """End every wait at once, tell the others why, and end all threads.

        ``linger_s``: how long the others may still receive what they have not confirmed.
        """
        self._on(Closed(reason))
        for missed in self._missed:
            missed.cancel()
            missed.join()
        for channel in self._channels.values():
            channel.session.leave(reason, linger_s)
        until_s = time.monotonic() + linger_s + GOODBYE_S
        for channel in self._channels.values():
            channel.session.wait_over(max(0.0, until_s - time.monotonic()))
        for channel in self._channels.values():
            channel.end()
        self._sockets.close()
        if self._acceptor:
            self._acceptor.join()
        for channel in self._channels.values():
            channel.session.join()
        self._adding.shutdown(wait=True, cancel_futures=True)
        with self._changed:
            self._packs.clear()

    # The channels' threads

    def announced(self, rank: int, head: PackHead, size: int, is_live: Callable[[], bool]) -> Landing | None:
        event = Announced(rank, head.key, head.phase, head.call)
        with self._changed:
            while True:
                state, effects = machine.step(self._state, event)
                takes = any(isinstance(effect, Take) for effect in effects)
                # The members of a generation that this one has not heard of yet are unknown.
                is_known = head.key.generation <= state.floor[0]
                if is_known and (not takes or has_room(self._packs, state, rank, head, self._limits)):
                    break
                if not is_live():
                    raise ConnectionError("the session ended meanwhile")
                self._changed.wait()
            if takes and size != message_bytes(head.call, head.phase, rank, self.rank, state.present):
                raise MalformedFrame(f"{size} bytes for a {head.call.numbers}")
            if takes:
                pack = self._packs.setdefault(head.key, Pack(self.rank, state.present))
            later = self._apply(state, effects)
        self._add(later)
        return pack.land(rank, head.phase, head.call) if takes else None

    def came(self, rank: int, head: PackHead) -> None:
        with self._changed:
            pack = self._packs.get(head.key)
        if pack:
            pack.take(rank, head.phase)

    def arrived(self, rank: int, head: PackHead) -> None:
        self._on(Arrived(rank, head.key, head.phase))

    def disconnected(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def left(self, rank: int, problem: Problem) -> None:
        _log.info("%s has left: %s", self._state.name(rank), problem.what)
        if problem.code in problems.LOSSES:
            missed = threading.Timer(self._limits.missed_s, self._on, (Left(rank, problem),))
            missed.daemon = True
            self._missed.append(missed)
            missed.start()
        else:
            self._on(Left(rank, problem))

    def broke(self, error: Exception) -> None:
        _log.error("the exchange broke", exc_info=error)
        self._on(Closed(problems.broken(error)))

    def _on_connection(self, connection: MemberConnection) -> None:
        self._channels[connection.rank].called(connection)

    # State and effects

    def _on(self, event: Event) -> None:
        with self._changed:
            state, effects = machine.step(self._state, event)
            later = self._apply(state, effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._channels[effect.rank].session.wake()
        self._add(later)

    def _apply(self, state: State, effects: Sequence[Effect]) -> list[Key]:
        """Call with the lock held. Returns the keys of sums to add after releasing it."""
        self._state = state
        later = []
        for effect in effects:
            match effect:
                case Send(rank, key, phase):
                    # Under the lock: a caller that sees the meeting complete may take its result and close.
                    call = state.meetings[key].call
                    assert call is not None
                    payload = self._packs[key].payload(rank, phase)
                    self._channels[rank].send(key, phase, call, payload)
                case Complete(key):
                    self._over[key] = None
                case Fail(key, problem):
                    self._packs.pop(key, None)
                    self._over[key] = problem
                case Discard(key):
                    self._packs.pop(key, None)
                    self._over.pop(key, None)
                case Add(key):
                    later.append(key)
                case Take():
                    pass
        # Only when a wait may end: each thread that wakes needs the interpreter.
        if any(isinstance(effect, Complete | Fail | Discard) for effect in effects):
            self._changed.notify_all()
        return later

    def _add(self, keys: Sequence[Key]) -> None:
        for key in keys:
            with self._changed:
                pack = self._packs.get(key)
            if pack:
                pack.advance()
                self._on(Added(key))

    def _add_in_background(self, keys: Sequence[Key]) -> None:
        try:
            self._add(keys)
        except Exception as error:
            self.broke(error)

    def _all_over(self, keys: Sequence[Key]) -> bool:
        """Whether all are complete. Raises ``ExchangeFailed`` for the first failed key, ``KeyError`` for one
        that was not handed over."""
        for key in keys:
            if problem := self._over.get(key):
                raise ExchangeFailed(problem)
            if key[:2] < self._state.floor:
                raise ExchangeFailed(problems.old(key, self._state.floor))
            meeting = self._state.meetings.get(key)
            if meeting is None or meeting.call is None:
                raise KeyError(f"{key} was not handed over")
        return all(key in self._over for key in keys)
