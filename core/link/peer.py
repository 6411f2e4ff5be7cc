"""One paired device: at most one link to it, and calls that go on while there is none. On the core loop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from typing import Protocol

from msgspec.structs import replace

from core.home.identity import Identity
from core.link import problems
from core.link.dial import Backoff, reach
from core.link.driver import Connection, turn_away
from core.link.tie_break import RUN_BYTES, BadNonce, tie_break
from core.net import tls
from core.net.address import Address, host_of, parse
from core.runtime.timers import Clock
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import Hello, Message
from core.vocabulary.settings import DEFAULT_PORT
from core.vocabulary.text import fit_name

STEADY_S = 10.0
"""A link that stood this long was a success: the next pauses are short again."""

_TOLD = frozenset({"link-refused", "versions-differ", "link-bad-hello", "bad-frame"})
"""Calls that fail for a reason which a person has to mend. A laptop that is not there is no such thing, and
neither is another device at an address where this one was before."""

_log = logging.getLogger(__name__)


class Hub(Protocol):
    """What the hub gives each of its peers."""

    identity: Identity
    clock: Clock
    backoff: Backoff

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
        self.trouble: Problem | None = None
        """Why the last call failed or the last link ended; None while there is one."""
        self._told = ""
        """The code of the last trouble without a link that was told."""
        self._hub = hub
        # A run of its own for each pairing: numbers begin anew, and the other side has to see that.
        self._tie_break = tie_break(hub.identity.device_id, device, os.urandom(RUN_BYTES))
        self._context = tls.client_context(hub.identity, certificate)
        self._found: tuple[str, ...] = ()
        self._hints = hints
        self._call: Connection | None = None
        """Ours, while its hello is not answered."""
        self._call_over = asyncio.Event()
        self._call_address = Address("")
        self._up_since_s = 0.0
        self._failures = 0
        self._wake = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()
        self._keeping = asyncio.create_task(self._keep_linked())

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
        if self.link is None:
            self._failures = 0
            self._wake.set()

    def take(self, streams: tls.Streams, theirs: Hello) -> None:
        """The device called, proved itself, and said hello."""
        try:
            nonce = self._tie_break.judge_call(theirs.nonce)
        except BadNonce:
            self._in_background(turn_away(streams, problems.bad_hello(self.name)))
            return
        if nonce is None:
            self._in_background(turn_away(streams, problems.crossed(self.name)))
            return
        connection = self._connection(streams)
        connection.start_as_called(replace(self._hub.hello(), nonce=nonce), theirs)

    def end(self, problem: Problem) -> None:
        """Say goodbye and stop calling."""
        self._keeping.cancel()
        for connection in (self.link, self._call):
            if connection is not None:
                connection.leave(problem)

    async def wait_ended(self) -> None:
        await asyncio.gather(self._keeping, *self._ending, return_exceptions=True)

    # --- what its connections tell ---------------------------------------------------------------------

    def on_up(self, connection: Connection, hello: Hello) -> None:
        if connection is not self._call:
            port = hello.port if 1 <= hello.port <= 65535 else DEFAULT_PORT
            self._become(connection, hello, Address(host_of(connection.ends[1]), port))
            return
        self._call = None
        self._call_over.set()
        try:
            won = self._tie_break.judge_answer(hello.nonce)
        except BadNonce:
            connection.leave(problems.bad_hello(self.name))
            return
        if won:
            self._become(connection, hello, self._call_address)
        else:
            connection.leave(problems.crossed(self.name))

    def on_message(self, connection: Connection, message: Message) -> None:
        if connection is self.link:
            self._hub.received(self.device, message)

    def on_over(self, connection: Connection, problem: Problem) -> None:
        if connection is self._call:
            self._call = None
            self._call_over.set()
            self._tie_break.gave_up()
        if connection is not self.link:
            self._call_failed(problem)
        else:
            self.link = None
            self._tie_break.lost()
            steady = self._hub.clock.time() - self._up_since_s >= STEADY_S
            self._failures = 1 if steady else self._failures + 1
            self.trouble = problem
            self._wake.set()
            self._hub.went_down(self.device, problem)

    def _become(self, connection: Connection, hello: Hello, address: Address) -> None:
        old, self.link = self.link, connection
        self.trouble, self._told = None, ""
        self._up_since_s = self._hub.clock.time()
        self._wake.set()
        if old is not None:
            # What was on its way over the old one may be lost: whoever waits for it has to know.
            old.leave(problems.replaced(self.name))
            self._hub.went_down(self.device, problems.replaced(self.name))
        self._hub.came_up(self.device, replace(hello, name=fit_name(hello.name)), str(address))

    # --- calling ---------------------------------------------------------------------------------------

    async def _keep_linked(self) -> None:
        while True:
            self._wake.clear()
            if self.link is not None:
                await self._wake.wait()
            elif self._failures == 0 or not await self._woken_in(self._pause_s()):
                await self._call_once()

    def _pause_s(self) -> float:
        return self._hub.backoff.wait_s(self._failures, self._hub.chance())

    async def _woken_in(self, pause_s: float) -> bool:
        try:
            async with asyncio.timeout(pause_s):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    async def _call_once(self) -> None:
        """Until the call is answered or has failed: bounded by TLS's limits and the machine's silence."""
        try:
            streams, address = await reach(self._addresses(), self._connect)
        except TandemError as failure:
            self._call_failed(failure.problem)
            return
        except Exception:
            _log.exception("calling %s", self.name)
            self._call_failed(problems.failed(self.name))
            return
        if self.link is not None:
            streams[1].transport.abort()
            return
        self._call_address = address
        self._call_over.clear()
        nonce = self._tie_break.call()
        self._call = self._connection(streams)
        self._call.start_as_caller(replace(self._hub.hello(), nonce=nonce))
        await self._call_over.wait()

    async def _connect(self, address: Address) -> tls.Streams:
        return await tls.connect(address.host, address.port, self._context, self.certificate)

    def _addresses(self) -> list[Address]:
        addresses = []
        for text in dict.fromkeys((*self._found, *self._hints)):
            try:
                addresses.append(parse(text))
            except TandemError as failure:
                _log.debug("%s: %s", self.name, failure.what)
        return addresses

    def _call_failed(self, problem: Problem) -> None:
        """A call of ours or the peer's came to nothing."""
        if self.link is not None:
            return
        self._failures += 1
        again = self.trouble is not None and self.trouble.code == problem.code
        self.trouble = problem
        _log.debug("%s: %s %s", self.name, problem.what, problem.detail)
        # Once may be chance: right after pairing, this side may be quicker to call than the other to store.
        if again and problem.code in _TOLD and problem.code != self._told:
            self._told = problem.code
            self._hub.went_down(self.device, problem)

    def _connection(self, streams: tls.Streams) -> Connection:
        connection = Connection(streams, self.name, self, self._hub.clock)
        self._in_background(connection.wait_closed())
        return connection

    def _in_background(self, ending: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
