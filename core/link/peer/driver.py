"""Drives one paired device: its connections, its addresses, the pauses between calls. On the core loop."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Literal, Protocol

from msgspec.structs import replace

from core.home.identity import Identity
from core.link import problems
from core.link.dial import Backoff, reach
from core.link.driver import Connection, Limits, turn_away
from core.link.peer.machine import Step, begun, step
from core.link.peer.state import (
    CallFailed,
    CameUp,
    Dial,
    Effect,
    EndPause,
    Event,
    Greet,
    HangUp,
    Hoped,
    Leaving,
    Left,
    Linked,
    Pause,
    PauseOver,
    Reached,
    State,
    StopDialling,
    TellDown,
    TheirsFailed,
    WentDown,
)
from core.link.tie_break import RUN_BYTES, BadNonce, tie_break
from core.net import tls
from core.net.address import Address, host_of, parse
from core.runtime.background import Background
from core.runtime.timers import Clock, Timers
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import Hello, Message
from core.vocabulary.settings import DEFAULT_PORT
from core.vocabulary.text import fit_name

_log = logging.getLogger(__name__)


class Hub(Protocol):
    """What all peers share. ``came_up``, ``went_down`` and ``received`` must not block."""

    identity: Identity
    background: Background
    clock: Clock
    backoff: Backoff
    limits: Limits

    def hello(self) -> Hello: ...

    def chance(self) -> float: ...

    def came_up(self, device: DeviceId, hello: Hello, address: str) -> None: ...

    def went_down(self, device: DeviceId, problem: Problem) -> None: ...

    def received(self, device: DeviceId, message: Message) -> None: ...


class Peer:
    """``certificate``: its pin (DER). ``hints``: the addresses at which it was met before."""

    def __init__(
        self, hub: Hub, device: DeviceId, certificate: bytes, name: str, hints: tuple[str, ...]
    ) -> None:
        self.device = device
        self.certificate = certificate
        self.name = name or short(device)
        self.link: Connection | None = None
        self._hub = hub
        # A run of its own for each pairing: numbers begin anew, and the other side has to see that.
        self._tie_break = tie_break(hub.identity.device_id, device, os.urandom(RUN_BYTES))
        self._context = tls.client_context(hub.identity, certificate)
        self._found: tuple[str, ...] = ()
        self._hints = hints
        self._answered_at: Address | None = None
        """Where a call of ours reached it last."""
        self._reached: tuple[tls.Streams, Address] | None = None
        self._call: Connection | None = None
        """Ours, while its hello is not answered."""
        self._call_address = Address("")
        self._dialling: asyncio.Task[None] | None = None
        self._timers: Timers[Literal["pause"]] = Timers(hub.clock, lambda _: self._happened(PauseOver()))
        self._state: State
        self._enter(begun())

    @property
    def trouble(self) -> Problem | None:
        """Why the last call failed or the last link ended; None while there is one."""
        return None if isinstance(self._state, Linked | Left) else self._state.tries.trouble

    def found(self, addresses: tuple[str, ...]) -> None:
        """The network shows it here: called at once where it has no link."""
        if addresses != self._found:
            self._found = addresses
            self.try_now()

    def gone(self) -> None:
        """Its old addresses are still worth a try, but being found again will be news."""
        self._hints = tuple(dict.fromkeys((*self._found, *self._hints)))
        self._found = ()

    def try_now(self) -> None:
        self._happened(Hoped())

    def take(self, streams: tls.Streams, theirs: Hello) -> None:
        """The device called, proved itself, and said hello."""
        try:
            nonce = self._tie_break.judge_call(theirs.nonce)
        except BadNonce:
            self._turn_away(streams, problems.bad_hello(self.name))
            return
        if nonce is None:
            self._turn_away(streams, problems.crossed(self.name))
            return
        self._connection(streams).start_as_called(replace(self._hub.hello(), nonce=nonce), theirs)

    def end(self, problem: Problem) -> None:
        """Say goodbye and stop calling; the hub's background has what is left to do."""
        self._happened(Leaving())
        for connection in (self.link, self._call):
            if connection is not None:
                connection.leave(problem)

    # --- what its connections tell ---------------------------------------------------------------------

    def on_up(self, connection: Connection, hello: Hello) -> None:
        if connection is not self._call:
            port = hello.port if 1 <= hello.port <= 65535 else DEFAULT_PORT
            self._become(connection, hello, Address(host_of(connection.ends[1]), port), ours=False)
            return
        try:
            won = self._tie_break.judge_answer(hello.nonce)
        except BadNonce:
            connection.leave(problems.bad_hello(self.name))
            return
        if won:
            self._call = None
            self._become(connection, hello, self._call_address, ours=True)
        else:
            connection.leave(problems.crossed(self.name))

    def on_message(self, connection: Connection, message: Message) -> None:
        if connection is self.link:
            self._hub.received(self.device, message)

    def on_over(self, connection: Connection, problem: Problem) -> None:
        if connection is self._call:
            self._call = None
            self._tie_break.gave_up()
            self._happened(CallFailed(problem))
        elif connection is self.link:
            self.link = None
            self._tie_break.lost()
            self._happened(WentDown(problem))
        else:
            self._happened(TheirsFailed(problem))

    def _become(self, connection: Connection, hello: Hello, address: Address, *, ours: bool) -> None:
        old, self.link = self.link, connection
        self._happened(CameUp(ours))
        if old is not None:
            # What was on its way over the old one may be lost: whoever waits for it has to know.
            old.leave(problems.replaced(self.name))
            self._hub.went_down(self.device, problems.replaced(self.name))
        self._hub.came_up(self.device, replace(hello, name=fit_name(hello.name)), str(address))

    # --- what its machine asks for ---------------------------------------------------------------------

    def _happened(self, event: Event) -> None:
        if isinstance(event, CallFailed | TheirsFailed):
            _log.debug("%s: %s %s", self.name, event.problem.what, event.problem.detail)
        self._enter(step(self._state, event, self._hub.clock.time()))

    def _enter(self, after: Step) -> None:
        self._state, effects = after
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Dial():
                self._dialling = self._hub.background.start(f"calling {self.name}", self._dial())
            case Greet():
                streams, self._call_address = self._take_reached()
                self._call = self._connection(streams)
                self._call.start_as_caller(replace(self._hub.hello(), nonce=self._tie_break.call()))
            case HangUp():
                (_, writer), _ = self._take_reached()
                writer.transport.abort()
            case Pause(failures):
                self._timers.set("pause", self._hub.backoff.wait_s(failures, self._hub.chance()))
            case EndPause():
                self._timers.cancel("pause")
            case StopDialling():
                if self._dialling is not None:
                    self._dialling.cancel()
            case TellDown(problem):
                self._hub.went_down(self.device, problem)

    async def _dial(self) -> None:
        """Until an address answered or all failed: bounded by TLS's limits."""
        try:
            self._reached = await reach(self._addresses(), self._connect)
            self._answered_at = self._reached[1]
        except TandemError as failure:
            self._happened(CallFailed(failure.problem))
        except Exception:
            _log.exception("calling %s", self.name)
            self._happened(CallFailed(problems.failed(self.name)))
        else:
            self._happened(Reached())

    def _take_reached(self) -> tuple[tls.Streams, Address]:
        reached, self._reached = self._reached, None
        assert reached is not None
        return reached

    async def _connect(self, address: Address) -> tls.Streams:
        try:
            return await tls.connect(address.host, address.port, self._context, self.certificate)
        except TandemError as failure:
            if failure.code != tls.NOBODY_LISTENS or address == self._answered_at:
                raise
            # An address of earlier days may be another machine's by now: that one's no ends nothing.
            raise TandemError(code="unreachable", what=failure.what, fix=failure.fix) from failure

    def _addresses(self) -> list[Address]:
        addresses = []
        for text in dict.fromkeys((*self._found, *self._hints)):
            try:
                addresses.append(parse(text))
            except TandemError as failure:
                _log.debug("%s: %s", self.name, failure.what)
        return addresses

    def _connection(self, streams: tls.Streams) -> Connection:
        hub = self._hub
        return Connection(streams, self.name, self, hub.background, clock=hub.clock, limits=hub.limits)

    def _turn_away(self, streams: tls.Streams, problem: Problem) -> None:
        closing = turn_away(streams, problem, self._hub.limits)
        self._hub.background.start(f"turning {self.name} away", closing)
