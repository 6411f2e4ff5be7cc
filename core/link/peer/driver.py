"""Drives one paired device: its connections, its addresses, the pauses between calls. On the core loop."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from typing import Literal, Protocol

from msgspec.structs import replace

from core.home.identity import Identity
from core.link import greeting, problems
from core.link.budgets import Allowance
from core.link.dial import Backoff, reach
from core.link.driver import Limits, Link
from core.link.peer.machine import Step, begun, step
from core.link.peer.state import (
    CallFailed,
    CameUp,
    Dismissed,
    Effect,
    EndPause,
    Event,
    Greet,
    HangUp,
    Linked,
    NetworkChanged,
    NotCalled,
    Pause,
    PauseOver,
    Reached,
    State,
    StopDialling,
    TellDown,
    TheirsFailed,
    TryAddresses,
    WentDown,
)
from core.net import tls
from core.net.address import Address, host_of, parse
from core.runtime.background import Background
from core.runtime.timers import Clock, Timers
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import BusyTold, Bye, Hello, Message
from core.vocabulary.settings import DEFAULT_PORT
from core.vocabulary.text import fit_name

SESSION_BYTES = 8
_log = logging.getLogger(__name__)


class Hub(Protocol):
    """The parts that all peers share. The methods that report an event must not block."""

    identity: Identity
    background: Background
    clock: Clock
    backoff: Backoff
    limits: Limits

    def hello(self) -> Hello: ...

    def chance(self) -> float: ...

    def came_up(self, device: DeviceId, hello: Hello, address: str) -> None: ...

    def went_away(self, device: DeviceId, problem: Problem) -> None: ...

    def went_down(self, device: DeviceId, problem: Problem) -> None: ...

    def received(self, device: DeviceId, message: Message) -> None: ...

    def exceeded(self, device: DeviceId, problem: Problem) -> None: ...


class PeerDriver:
    """One paired device. ``certificate``: its pin (DER). ``hints``: addresses where it was reached before."""

    def __init__(
        self, hub: Hub, device: DeviceId, certificate: bytes, name: str, hints: tuple[str, ...]
    ) -> None:
        self.device = device
        self.certificate = certificate
        self.name = name or short(device)
        self.link: Link | None = None
        self.name_said = ""
        """This laptop's name, as last sent to the device."""
        self._allowance = Allowance()
        self._hub = hub
        self._leads = hub.identity.device_id < device
        """This side numbers the connections: clocks differ, and crossing calls are seen in different
        orders."""
        self._numbered = self._their_number = 0
        """The numbers of our newest hello, and of the device's hello for the present connection."""
        self._session, self._their_session = os.urandom(SESSION_BYTES), b""
        """``Hello.session`` of both sides."""
        self._context = tls.client_context(hub.identity, certificate)
        self._found: tuple[str, ...] = ()
        self._hints = hints
        self._answered_at: Address | None = None
        """The address at which it last answered a call of ours."""
        self._reached: tuple[tls.Streams, Address] | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._greeting: asyncio.Task[None] | None = None
        """Set while our hello is not answered."""
        self._shown: tuple[Hello, str] | None = None
        """The hello and the address in the last report that the device is linked."""
        self._timers: Timers[Literal["pause"]] = Timers(hub.clock, lambda _: self._happened(PauseOver()))
        self._state: State
        self._enter(begun())

    @property
    def trouble(self) -> Problem | None:
        """Why the last call failed or the last link ended; None while there is one."""
        return None if isinstance(self._state, Linked | NotCalled) else self._state.tries.trouble

    @property
    def session_key(self) -> bytes:
        """The same on both sides, and different for each session of the link."""
        return hashlib.sha256(b"".join(sorted((self._session, self._their_session)))).digest()

    @property
    def address(self) -> Address | None:
        """The address where it listens; None: there is no link."""
        shown = self._shown
        return None if shown is None else parse(shown[1])

    def found(self, addresses: tuple[str, ...]) -> None:
        """Discovery found it at these addresses: call it at once if they are new and it has no link."""
        if addresses != self._found:
            self._found = addresses
            self.try_now()

    def gone(self) -> None:
        """Keep trying its old addresses; finding it again triggers a new call."""
        self._hints = tuple(dict.fromkeys((*self._found, *self._hints)))
        self._found = ()

    def try_now(self) -> None:
        self._happened(NetworkChanged())

    def accept(self, streams: tls.Streams, theirs: Hello) -> None:
        """The device called, authenticated itself, and said hello."""
        mine = self._hello()
        if (problem := greeting.difference(mine, theirs, self.name)) is not None:
            self._turn_away(streams, mine)
            self._happened(TheirsFailed(problem))
            return
        if (problem := self._why_not(mine, theirs)) is not None:
            self._turn_away(streams, Bye(problem=problem))
            return
        greeting.answer(streams, mine)
        port = theirs.port if 1 <= theirs.port <= 65535 else DEFAULT_PORT
        host = host_of(streams[1].get_extra_info("peername") or ("", 0))
        self._become(streams, mine, theirs, Address(host, port), ours=False)

    def end(self, problem: Problem) -> None:
        """Say goodbye and stop calling; the remaining work runs in the hub's background."""
        self._happened(Dismissed())
        if self._greeting is not None:
            self._greeting.cancel()
        if self.link is not None:
            self.link.leave(problem)

    # --- events from its link --------------------------------------------------------------------------

    def on_message(self, link: Link, message: Message) -> None:
        if link is not self.link:
            return
        if isinstance(message, BusyTold) and self._shown is not None:
            hello, address = self._shown
            name = fit_name(message.name) if message.name else hello.name
            self._shown = replace(hello, name=name, busy=message.busy), address
        self._hub.received(self.device, message)

    def on_excess(self, problem: Problem) -> None:
        self._hub.exceeded(self.device, problem)

    def on_lost(self, link: Link, problem: Problem) -> None:
        if link is self.link:
            self._happened(WentDown(problem))

    def on_away(self, link: Link, problem: Problem) -> None:
        if link is self.link:
            self._hub.went_away(self.device, problem)

    def on_back(self, link: Link) -> None:
        if link is self.link and self._shown is not None:
            self._hub.came_up(self.device, *self._shown)

    def on_over(self, link: Link, problem: Problem) -> None:
        if link is not self.link:
            return
        self.link = self._shown = None
        self._session = os.urandom(SESSION_BYTES)
        if isinstance(self._state, Linked):
            self._happened(WentDown(problem))
        self._hub.went_down(self.device, problem)

    def _hello(self) -> Hello:
        """Our hello for a new connection."""
        self._numbered += 1
        return replace(self._hub.hello(), session=self._session, number=self._numbered)

    def _number(self, mine: Hello, theirs: Hello) -> int:
        return (mine if self._leads else theirs).number

    def _why_not(self, mine: Hello, theirs: Hello) -> Problem | None:
        """Why a connection with these hellos cannot become the link; None: it does, in place of any other."""
        is_same = self.link is not None and theirs.session == self._their_session
        newest = self.link.number if self.link is not None and is_same else 0
        number = self._number(mine, theirs)
        if len(theirs.session) != SESSION_BYTES or number < 1:
            return problems.bad_hello(self.name)
        # A call that the device gave up may arrive late, and would replace a connection that works.
        is_late = is_same and theirs.number < self._their_number
        return None if number > newest and not is_late else problems.crossed(self.name)

    def _become(
        self, streams: tls.Streams, mine: Hello, theirs: Hello, address: Address, *, ours: bool
    ) -> None:
        """Continue over this connection, on which both hellos were exchanged."""
        if self.link is not None and theirs.session != self._their_session:
            old, self.link, self._shown = self.link, None, None
            old.end(problems.renewed(self.name))
            self._hub.went_down(self.device, problems.renewed(self.name))
        if self.link is None:
            hub, self._their_session = self._hub, theirs.session
            self.link = Link(
                self, hub.background, clock=hub.clock, limits=hub.limits, allowance=self._allowance
            )
        self.name_said, self._their_number = mine.name, theirs.number
        self._happened(CameUp(ours))
        self.link.carry(streams, self._number(mine, theirs))
        before = self._shown
        self._shown = replace(theirs, name=fit_name(theirs.name), session=b"", number=0), str(address)
        if not self.link.is_away and self._shown != before:
            self._hub.came_up(self.device, *self._shown)

    # --- effects of its machine ------------------------------------------------------------------------

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
            case TryAddresses():
                self._dialling = self._hub.background.start(f"calling {self.name}", self._dial())
            case Greet():
                greet = self._greet(*self._take_reached())
                self._greeting = self._hub.background.start(f"saying hello to {self.name}", greet)
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
            case TellDown(problem) if self.link is None:
                self._hub.went_down(self.device, problem)
            case TellDown(problem) if self.link.is_away or problem.code != "link-refused":
                # A second refusal may be chance, as long as the device is not away.
                self.link.end(problem)
            case TellDown():
                pass

    async def _dial(self) -> None:
        """Runs until an address answered or all failed: bounded by TLS's limits."""
        try:
            self._reached = await reach(self._addresses(), self._connect)
            self._answered_at = self._reached[1]
        except TandemError as failure:
            self._happened(CallFailed(failure.problem))
        except Exception:
            _log.exception("calling %s failed", self.name)
            self._happened(CallFailed(problems.failed(self.name)))
        else:
            self._happened(Reached())

    async def _greet(self, streams: tls.Streams, address: Address) -> None:
        """Bounded by the greeting's limit."""
        mine, handed_on = self._hello(), False
        try:
            theirs = await greeting.call(streams, mine, self.name)
            why_not = self._why_not(mine, theirs)
            if mine.session != self._session or isinstance(self._state, NotCalled):
                why_not = problems.crossed(self.name)  # the session ended meanwhile
            if why_not is None:
                handed_on = True
                self._become(streams, mine, theirs, address, ours=True)
                return
            problem = why_not
        except TandemError as failure:
            problem = failure.problem
        except asyncio.CancelledError:
            problem = problems.closed(self.name)
        finally:
            self._greeting = None
            if not handed_on:
                streams[1].transport.abort()
        self._happened(CallFailed(problem))

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
            # An earlier address may belong to another machine now: its refusal proves nothing about the
            # device.
            raise TandemError(code="unreachable", what=failure.what, fix=failure.fix) from failure

    def _addresses(self) -> list[Address]:
        addresses = []
        for text in dict.fromkeys((*self._found, *self._hints)):
            try:
                addresses.append(parse(text))
            except TandemError as failure:
                _log.debug("%s: %s", self.name, failure.what)
        return addresses

    def _turn_away(self, streams: tls.Streams, last: Hello | Bye) -> None:
        closing = greeting.turn_away(streams, last, self._hub.limits.flush_s)
        self._hub.background.start(f"turning {self.name} away", closing)
