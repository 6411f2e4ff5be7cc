"""All links of a node: one for each paired device that is there. On the core loop; callbacks don't block."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from core.home.certificate import device_id
from core.home.identity import Identity
from core.link import problems
from core.link.dial import Backoff
from core.link.driver import LIMITS, Limits, turn_away
from core.link.peer.driver import Peer
from core.net.address import host_of
from core.net.tls import Streams, peer_der
from core.runtime.background import Background
from core.runtime.timers import Clock, LaptopClock
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Hello, Message

_CLOSE_FLUSHES = 3
"""A link ends within two: its last words, then the connection."""


class Links:
    """``hello`` is asked for anew for each connection. Devices are linked from ``pair`` until ``forget``.

    ``on_up(device, hello, address)``: linked and proven; ``address`` is where it listens, ``host:port``.
    Versions of Tandem's protocol agree then, other versions may not (``versions.difference``).
    ``on_down(device, problem)``: the link ended, or calls fail for a reason that a person has to mend.
    Calling goes on. A newer connection in place of the link gives ``on_down``, then ``on_up``.
    """

    def __init__(
        self,
        identity: Identity,
        hello: Callable[[], Hello],
        *,
        on_up: Callable[[DeviceId, Hello, str], None],
        on_down: Callable[[DeviceId, Problem], None],
        on_message: Callable[[DeviceId, Message], None],
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
        self.went_down = on_down
        self.received = on_message
        self._peers: dict[DeviceId, Peer] = {}

    # --- which devices ---------------------------------------------------------------------------------

    def pair(self, certificate: bytes, *, name: str, hints: Iterable[str] = ()) -> None:
        """Keep a link to the device whose certificate (DER) this is; ``hints`` as ``host:port``.

        Again for a device that is paired already: ``name`` is what it is called from now on.
        """
        device = device_id(certificate)
        if known := self._peers.get(device):
            known.name = name
        elif device != self.identity.device_id:
            self._peers[device] = Peer(self, device, certificate, name, tuple(hints))

    def forget(self, device: DeviceId) -> None:
        """End the link to a device for good; it is told."""
        peer = self._peers.pop(device, None)
        if peer is not None:
            peer.end(problems.forgotten())

    def found(self, device: DeviceId, addresses: Iterable[str]) -> None:
        """The network shows a device at these addresses: called at once if it is paired and not linked."""
        if peer := self._peers.get(device):
            peer.found(tuple(addresses))

    def gone(self, device: DeviceId) -> None:
        """The network does not show a device any more. Its link, if any, stands."""
        if peer := self._peers.get(device):
            peer.gone()

    def addresses_changed(self) -> None:
        """This laptop joined or left a network: whoever has no link is called at once."""
        for peer in self._peers.values():
            peer.try_now()

    def take(self, streams: Streams, hello: Hello) -> None:
        """A connection that a pinned device opened, with its first message."""
        peer = self._peers.get(device_id(peer_der(streams[1])))
        if peer is None:
            closing = turn_away(streams, problems.forgotten(), self.limits)
            self.background.start("turning a stranger away", closing)
        else:
            peer.take(streams, hello)

    # --- the links -------------------------------------------------------------------------------------

    @property
    def linked(self) -> tuple[DeviceId, ...]:
        return tuple(device for device, peer in self._peers.items() if peer.link is not None)

    def send(self, device: DeviceId, message: Message) -> bool:
        """Queue a message. False: no link. A peer that does not keep up loses its link."""
        peer = self._peers.get(device)
        return peer is not None and peer.link is not None and peer.link.send(message)

    async def send_flowing(self, device: DeviceId, message: Message) -> bool:
        """Queue a message once there is room; for many large ones in a row. False: no link (any more)."""
        peer = self._peers.get(device)
        return peer is not None and peer.link is not None and await peer.link.send_flowing(message)

    def send_all(self, message: Message) -> None:
        """Queue a message for every linked device."""
        for device in self.linked:
            self.send(device, message)

    def peer_host(self, device: DeviceId) -> str:
        """The device's address as used on its link; ``""`` where there is none."""
        peer = self._peers.get(device)
        return host_of(peer.link.ends[1]) if peer is not None and peer.link is not None else ""

    def own_host(self, device: DeviceId) -> str:
        """This laptop's address as used on the link to the device; ``""`` where there is none."""
        peer = self._peers.get(device)
        return host_of(peer.link.ends[0]) if peer is not None and peer.link is not None else ""

    def name_said(self, device: DeviceId) -> str | None:
        """What this laptop was called in the hello of the link; None: no link."""
        peer = self._peers.get(device)
        return peer.link.mine.name if peer is not None and peer.link is not None else None

    def trouble(self, device: DeviceId) -> Problem | None:
        """Why a paired device has no link: how the last one ended, or the last call failed; None: unknown."""
        peer = self._peers.get(device)
        return peer.trouble if peer is not None else None

    def drop(self, device: DeviceId, problem: Problem) -> None:
        """End the link, telling the peer why. It is called again after a pause."""
        peer = self._peers.get(device)
        if peer is not None and peer.link is not None:
            peer.link.leave(problem)

    def renew(self, device: DeviceId, problem: Problem) -> None:
        """End the link and call at once: a hello is said only once, and what it says has changed."""
        self.drop(device, problem)
        if peer := self._peers.get(device):
            peer.try_now()

    async def close(self, problem: Problem) -> None:
        """Say goodbye on every link and stop calling. Takes a few seconds at most."""
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.end(problem)
        await self.background.settle(_CLOSE_FLUSHES * self.limits.flush_s)
