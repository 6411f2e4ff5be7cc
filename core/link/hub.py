"""All links of a node, one for each paired device in reach. On the core loop; callbacks must not block."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable

from core.home.certificate import device_id
from core.home.identity import Identity
from core.link import problems
from core.link.budgets import kind_of
from core.link.dial import Backoff
from core.link.driver import LIMITS, Limits, Link
from core.link.greeting import turn_away
from core.link.peer.driver import PeerDriver
from core.link.questions import Questions
from core.net.address import host_of
from core.net.tls import Streams, peer_der
from core.runtime.background import Background
from core.runtime.timers import Clock, LaptopClock
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import BusyTold, Bye, Hello, Message
from core.vocabulary.plan import NodePin

_CLOSE_FLUSHES = 3
"""Time to close all links, in ``flush_s``. One link takes at most two: for its queue, then its connection."""


class Links:
    """``hello`` is called for each connection. Devices are linked from ``pair`` until ``forget``.

    ``on_up(device, hello, address)``: linked and authenticated; ``address`` is where it listens,
    ``host:port``. Its protocol version is the same; other versions may differ (``versions.difference``).
    Called again when a device is back, and when its hello changed.
    ``on_away(device, problem)``: nothing has arrived for ten seconds. Messages wait until it is back.
    ``on_down(device, problem)``: the link ended, and unconfirmed messages are lost; or calls fail for a
    reason that a person has to fix. Calling continues. A broken connection alone is not reported.
    ``on_excess(device, problem)``: it exceeds a budget; once for each kind of message.
    """

    def __init__(
        self,
        identity: Identity,
        hello: Callable[[], Hello],
        *,
        on_up: Callable[[DeviceId, Hello, str], None],
        on_away: Callable[[DeviceId, Problem], None],
        on_down: Callable[[DeviceId, Problem], None],
        on_message: Callable[[DeviceId, Message], None],
        on_excess: Callable[[DeviceId, Problem], None],
        clock: Clock | None = None,
        backoff: Backoff = Backoff(),  # noqa: B008  (frozen)
        chance: Callable[[], float] = random.random,
        limits: Limits = LIMITS,
    ) -> None:
        self.identity = identity
        self.hello = hello
        self.clock: Clock = clock or LaptopClock()
        self.backoff = backoff
        self.limits = limits
        self.background = Background()
        self.chance = chance
        self.came_up = on_up
        self._on_away = on_away
        self._on_down = on_down
        self._on_message = on_message
        self._questions = Questions(self.send)
        self.exceeded = on_excess
        self._peers: dict[DeviceId, PeerDriver] = {}

    # --- which devices ---------------------------------------------------------------------------------

    def pair(self, certificate: bytes, *, name: str, hints: Iterable[str] = ()) -> None:
        """Keep a link to the device with this certificate (DER); ``hints`` as ``host:port``.

        Call again for a paired device to rename it to ``name``.
        """
        device = device_id(certificate)
        if known := self._peers.get(device):
            known.name = name
        elif device != self.identity.device_id:
            self._peers[device] = PeerDriver(self, device, certificate, name, tuple(hints))

    def forget(self, device: DeviceId, why: Problem | None = None) -> None:
        """End the link to a device for good, with a goodbye. ``why``: None if its user's laptop forgot it."""
        peer = self._peers.pop(device, None)
        if peer is not None:
            peer.end(why or problems.forgotten())

    def found(self, device: DeviceId, addresses: Iterable[str]) -> None:
        """Discovery found a device at these addresses: call it at once if it is paired and not linked."""
        if peer := self._peers.get(device):
            peer.found(tuple(addresses))

    def gone(self, device: DeviceId) -> None:
        """Discovery no longer finds a device. Its link, if any, stays."""
        if peer := self._peers.get(device):
            peer.gone()

    def addresses_changed(self) -> None:
        """This laptop joined or left a network: call every device without a link at once."""
        for peer in self._peers.values():
            peer.try_now()

    def accept(self, streams: Streams, hello: Hello) -> None:
        """A connection that a pinned device opened, with its first message."""
        peer = self._peers.get(device_id(peer_der(streams[1])))
        if peer is None:
            closing = turn_away(streams, Bye(problem=problems.forgotten()), self.limits.flush_s)
            self.background.start("turning a stranger away", closing)
        else:
            peer.accept(streams, hello)

    # --- the links -------------------------------------------------------------------------------------

    @property
    def linked(self) -> tuple[DeviceId, ...]:
        """Devices that are linked and not away."""
        return tuple(device for device in self._peers if self._present(device) is not None)

    def send(self, device: DeviceId, message: Message) -> bool:
        """Queue a message; it waits while the device is away. False: no link.

        Questions are not queued for a device that is away: they need an answer now. A peer that does not keep
        up loses its link.
        """
        peer = self._peers.get(device)
        if peer is None or peer.link is None or (peer.link.is_away and kind_of(message)[0] == "questions"):
            return False
        if isinstance(message, BusyTold) and message.name:
            peer.name_said = message.name
        return peer.link.send(message)

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None:
        """The answer to a question; None: the device is away, or does not answer within ``limit_s``."""
        return await self._questions.ask(device, question, limit_s)

    def send_all(self, message: Message, *, but: Container[DeviceId] = ()) -> None:
        """Queue a message for every linked device, away or not, except some."""
        for device in self._peers:
            if device not in but:
                self.send(device, message)

    def peer_of(self, device: DeviceId) -> PeerDriver | None:
        """A linked device, away or not; None: no link. Any thread."""
        peer = self._peers.get(device)
        return peer if peer is not None and peer.link is not None else None

    def peer_host(self, device: DeviceId) -> str:
        """The device's address as used on its link; ``""`` where there is none."""
        link = self._present(device)
        return host_of(link.ends[1]) if link is not None else ""

    def own_host(self, device: DeviceId) -> str:
        """This laptop's address as used on the link to the device; ``""`` where there is none."""
        link = self._present(device)
        return host_of(link.ends[0]) if link is not None else ""

    def node_pin(self, device: DeviceId) -> NodePin | None:
        """For members of a run that are not paired with the device; None: no link."""
        peer = self.peer_of(device)
        if peer is None or (address := peer.address) is None:
            return None
        return NodePin(certificate=peer.certificate, port=address.port)

    def name_said(self, device: DeviceId) -> str | None:
        """This laptop's name, as last sent to the device over its link; None: no link."""
        return self._peers[device].name_said if self._present(device) is not None else None

    def _present(self, device: DeviceId) -> Link | None:
        """The link to a device that is not away."""
        peer = self._peers.get(device)
        return peer.link if peer is not None and peer.link is not None and not peer.link.is_away else None

    def trouble(self, device: DeviceId) -> Problem | None:
        """Why a paired device has no link: how the last one ended, or the last call failed; None: unknown."""
        peer = self._peers.get(device)
        return peer.trouble if peer is not None else None

    # --- events from its peers -----------------------------------------------------------------------------

    def received(self, device: DeviceId, message: Message) -> None:
        if not self._questions.on_message(device, message):
            self._on_message(device, message)

    def went_away(self, device: DeviceId, problem: Problem) -> None:
        self._questions.give_up(device)
        self._on_away(device, problem)

    def went_down(self, device: DeviceId, problem: Problem) -> None:
        self._questions.give_up(device)
        self._on_down(device, problem)

    def drop(self, device: DeviceId, problem: Problem) -> None:
        """End the link, telling the peer why. Calls again after a pause."""
        peer = self._peers.get(device)
        if peer is not None and peer.link is not None:
            peer.link.leave(problem)

    async def close(self, problem: Problem) -> None:
        """Say goodbye on every link and stop calling. Takes a few seconds at most."""
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.end(problem)
        await self.background.settle(_CLOSE_FLUSHES * self.limits.flush_s)
