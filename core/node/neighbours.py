"""The other laptops: joins listener, discovery, pairing, trust and links. On the core loop.

Security invariant: discovery only gives hints where to call. Only the certificate of a TLS handshake,
compared with the pins of the trust store, identifies a device.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from core.discovery.presence import Presence
from core.discovery.record import Announcement
from core.home import trust
from core.home.opened_home import OpenedHome
from core.home.trust import TrustedPeer, TrustStore
from core.home.trust_file import SavedTrust
from core.link.hub import Links
from core.net import address
from core.net.port import EVERYWHERE, LOOPBACK
from core.net.strangers import Strangers
from core.node.listener import Listener
from core.node.member_links import IntroducedPeers
from core.pairing import state as pairing_state
from core.pairing.driver import PairingDriver
from core.runtime.background import Background
from core.transfer.hub import Transfers
from core.vocabulary import events as ev
from core.vocabulary.commands import CodePolicy, Pair
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import BusyTold, Hello, Message, TelemetrySent
from core.vocabulary.settings import Settings
from core.vocabulary.state import State
from core.vocabulary.text import fit_name
from core.vocabulary.traffic import LinkAway, LinkBack, LinkLost, LinkNews
from core.vocabulary.versions import LINK_PROTOCOL, difference

_log = logging.getLogger(__name__)

CLOSING = Problem(code="closed", what="Tandem was closed there.", fix="Open it again on that laptop.")


class Neighbours:
    """``emit`` accepts events; ``on_message`` receives links' messages except telemetry; ``on_link`` their
    news.

    ``hello`` is called for each connection.
    """

    def __init__(
        self,
        opened: OpenedHome,
        *,
        hello: Callable[[], Hello],
        emit: Callable[[ev.Event], None],
        on_message: Callable[[DeviceId, Message], None],
        on_link: Callable[[LinkNews], None],
        background: Background,
    ) -> None:
        self._emit, self._on_message, self._on_link = emit, on_message, on_link
        self._hello = hello
        self._background = background
        self._settings = opened.settings
        identity = opened.identity
        self._identity = identity
        self.trust = SavedTrust(opened.home.folder, opened.trust, self._on_trust)
        self._presence: Presence | None = None
        self._reached: dict[DeviceId, str] = {}
        """Each device's host in a link since the start, which may be a name."""
        self._strangers = strangers = Strangers()
        self.listener = Listener(
            identity,
            on_pairing=lambda sock, guest: self.pairing.accept_plain(sock, guest),
            on_files=lambda sock, guest: self.transfers.accept(sock, guest),
            on_hello=lambda streams, hello: self.links.accept(streams, hello),
            on_proof=lambda streams: self.pairing.accept_proof(streams),
            strangers=strangers,
        )
        self.pairing = PairingDriver(
            identity,
            opened.settings.name,
            lambda: self.listener.port,
            on_event=self._on_pairing,
            on_held=self._update_pins,
            known_as=lambda name: self.trust.store.known_as(name),
            strangers=strangers,
        )
        self.links = Links(
            identity,
            hello,
            on_up=self._on_up,
            on_away=self._on_away,
            on_down=self._on_down,
            on_message=self._on_link_message,
            on_excess=self._on_excess,
        )
        self.introduced = IntroducedPeers(
            identity.device_id, self.links, store=lambda: self.trust.store, on_change=self._update_pins
        )
        self.transfers = Transfers(identity, peer_of=self.links.peer_of, pins=lambda: self._pins)

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def addresses(self) -> tuple[str, ...]:
        """This laptop's own addresses, ``host:port``."""
        return self._presence.addresses if self._presence is not None else ()

    async def listen(self) -> Problem | None:
        """Listen, announce this node, and look for others. Returns a notice where another port was taken.

        Raises ``TandemError``.
        """
        self._update_pins()
        self._reserve_places()
        hello = self._hello()
        self.pairing.rename(hello.name)
        notice = await self.listener.start(self._settings.port, _hosts(self._settings))
        self._presence = Presence(
            Announcement(
                device=self._identity.device_id,
                name=hello.name,
                port=self.listener.port,
                protocol=LINK_PROTOCOL,
            ),
            on_found=self._on_found,
            on_gone=self._on_gone,
            on_addresses=self._on_addresses,
            on_problem=lambda problem: self._emit(ev.NoticeRaised(problem=problem)),
            wanted=self._settings.interfaces,
            discovery=self._settings.discovery,
        )
        await self._presence.start()
        return notice

    async def apply_settings(self, before: Settings, after: Settings, name: str) -> None:
        """Apply changed settings; a changed port is used at the next start."""
        self.pairing.rename(name)
        if self._presence is not None:
            await self._presence.change(
                name=name if before.name != after.name else None,
                wanted=after.interfaces if before.interfaces != after.interfaces else None,
                discovery=after.discovery if before.discovery != after.discovery else None,
            )
        self.tell_name()

    def tell_paired(self, message: Message) -> None:
        """Send it to every linked device, except those that are only introduced for a run."""
        self.links.send_all(message, but=self.introduced.nodes)

    def tell_name(self) -> None:
        """Tell linked paired devices this laptop's name, if it has changed since they were told."""
        mine = self._hello()
        for device in self.links.linked:
            if device not in self.introduced.nodes and self.links.name_said(device) != mine.name:
                self.links.send(device, BusyTold(busy=mine.busy, name=mine.name))

    def meet_paired(self) -> None:
        """Report the paired devices, and begin to link with them."""
        for peer in self.trust.store.peers:
            self._meet(peer)

    async def close(self) -> None:
        """Say goodbye to the network and on every link; takes a few seconds at most."""
        if self._presence is not None:
            await self._presence.close()
        await self.pairing.close()
        await self.listener.close()
        self.introduced.close()
        await self.links.close(CLOSING)
        self.transfers.close(CLOSING)

    # --- discovery -----------------------------------------------------------------------------------------

    def _on_found(self, device: DeviceId, name: str, addresses: tuple[str, ...]) -> None:
        self._emit(ev.DeviceFound(device=device, name=name, addresses=addresses))
        self.links.found(device, addresses)

    def _on_gone(self, device: DeviceId) -> None:
        self._emit(ev.DeviceGone(device=device))
        self.links.gone(device)

    def _on_addresses(self, addresses: tuple[str, ...]) -> None:
        self._emit(ev.AddressesChanged(addresses=addresses))
        self.links.addresses_changed()

    # --- commands ------------------------------------------------------------------------------------------

    def pair(self, command: Pair, state: State) -> None:
        """Raises ``TandemError``: not seen, no address, a pairing under way."""
        if command.address:
            self.pairing.start(address.parse(command.address))
            return
        device = state.devices.get(command.device) if command.device else None
        if device is None or not device.addresses:
            raise TandemError(
                code="not-seen",
                what=f"No device {short(command.device or '')} is seen on the network.".replace("  ", " "),
                fix="Open Tandem on it on the same network, or pair by the address that it shows.",
            )
        nearest = address.nearest(device.addresses, self.addresses)[0]
        self.pairing.start(address.parse(nearest), device.name)

    async def forget(self, device: DeviceId) -> None:
        await self.trust.change(lambda store: trust.forget(store, device))

    async def rename(self, device: DeviceId, nickname: str) -> None:
        nickname = fit_name(nickname) if nickname else ""
        await self.trust.change(lambda store: trust.rename(store, device, nickname))

    async def set_policy(self, device: DeviceId, policy: CodePolicy) -> None:
        await self.trust.change(lambda store: trust.set_policy(store, device, policy))

    # --- trust ---------------------------------------------------------------------------------------------

    def _on_trust(self, before: TrustStore, after: TrustStore) -> None:
        known = {peer.device for peer in before.peers}
        kept = {peer.device for peer in after.peers}
        for device in known - kept:
            self.links.forget(device)
            self._reached.pop(device, None)
        self._reserve_places()
        self.introduced.update_links()
        if before.pins != after.pins:
            self._update_pins()
        for device in known - kept:
            self._emit(ev.DeviceForgotten(device=device))
        for peer in after.peers:
            old = before.peer(peer.device)
            if old is None:
                self._meet(peer)
                continue
            if peer.nickname != old.nickname:
                self._emit(ev.DeviceRenamed(device=peer.device, nickname=peer.nickname))
            if peer.code_policy != old.code_policy:
                self._emit(ev.CodePolicyChanged(device=peer.device, policy=peer.code_policy))

    def _meet(self, peer: TrustedPeer) -> None:
        self._emit(
            ev.DevicePaired(
                device=peer.device,
                name=peer.name_at_pairing,
                nickname=peer.nickname,
                policy=peer.code_policy,
                addresses=peer.addr_hints,
            )
        )
        self.links.pair(peer.cert_der, name=peer.name, hints=peer.addr_hints)

    def _reserve_places(self) -> None:
        """Reserve places for paired laptops' known addresses: strangers must not keep them out."""
        hints = (hint for peer in self.trust.store.peers for hint in peer.addr_hints)
        self._strangers.keep_places(address.hosts(hints) | set(self._reached.values()))

    @property
    def _pins(self) -> tuple[bytes, ...]:
        return (*self.trust.store.pins, *self.introduced.pins)

    def _update_pins(self) -> None:
        self.listener.trust(self._pins, self.pairing.held())

    # --- pairing -------------------------------------------------------------------------------------------

    def _on_pairing(self, event: pairing_state.Event) -> None:
        if isinstance(event, pairing_state.Paired):
            self._background.start("saving a pairing", self._save_pin(event))
        else:
            self._emit(event)

    async def _save_pin(self, paired: pairing_state.Paired) -> None:
        peer = TrustedPeer(
            cert_der=paired.cert,
            name_at_pairing=paired.name,
            paired_at=time.time(),
            addr_hints=(str(paired.address),),
        )
        try:
            await self.trust.change(lambda store: trust.add(store, peer))
        except TandemError as error:
            if self.trust.store.peer(paired.device) is None:
                self._emit(ev.PairingEnded(device=paired.device, problem=error.problem))
                return
            self._emit(ev.NoticeRaised(problem=error.problem))
        self._emit(ev.PairingEnded(device=paired.device))

    # --- links ---------------------------------------------------------------------------------------------

    def _on_up(self, device: DeviceId, hello: Hello, where: str) -> None:
        self.transfers.reached(device)
        if is_paired := device not in self.introduced.nodes:
            self._reached[device] = self.links.peer_host(device)
            self._reserve_places()
        name = self._name_for(device, hello.name)
        self._emit(
            ev.LinkUp(
                device=device,
                name=name,
                address=where,
                versions=hello.versions,
                hardware=hello.hardware,
                busy=hello.busy,
                problem=difference(self._hello().versions, hello.versions, name),
            )
        )
        self._on_link(LinkBack(device))
        if is_paired:
            self._background.start("saving an address", self._remember(device, where))
        self.tell_name()  # the name may have changed since this link's hello

    def _name_for(self, device: DeviceId, said: str) -> str:
        """The device's own name, unless another device has it: requests show names."""
        peer = self.trust.store.peer(device)
        others = [each for each in self.trust.store.known_as(said) if each != device]
        if not others:
            return said
        return short(device) if peer is None else peer.name_at_pairing

    async def _remember(self, device: DeviceId, where: str) -> None:
        """Store the address, so that the next start calls it at once even if discovery cannot see it."""
        try:
            await self.trust.change(lambda store: trust.add_hint(store, device, where))
        except TandemError as error:
            _log.info("the address of %s is not saved: %s", short(device), error.what)

    def _on_away(self, device: DeviceId, problem: Problem) -> None:
        self._emit(ev.LinkDown(device=device, problem=problem))
        self._on_link(LinkAway(device, problem))

    def _on_down(self, device: DeviceId, problem: Problem) -> None:
        self.transfers.ended(device, problem)
        self._emit(ev.LinkDown(device=device, problem=problem))
        self._on_link(LinkLost(device, problem))

    def _on_excess(self, device: DeviceId, problem: Problem) -> None:
        _log.warning("%s: %s", short(device), problem)
        self._emit(ev.NoticeRaised(problem=problem))

    def _on_link_message(self, device: DeviceId, message: Message) -> None:
        if self.introduced.refuses(device, message):
            return
        match message:
            case TelemetrySent(reading=reading):
                self._emit(ev.TelemetryReported(device=device, reading=reading))
            case BusyTold(seal=str(seal)):
                self._emit(ev.SealChanged(device=device, seal=seal))
            case BusyTold(busy=busy, name=said):
                name = self._name_for(device, fit_name(said)) if said else ""
                self._emit(ev.BusyChanged(device=device, busy=busy, name=name))
            case _:
                self._on_message(device, message)


def _hosts(settings: Settings) -> Sequence[str]:
    """A node for this machine only (the demo) must not be reachable from others."""
    only_loopback = settings.interfaces and all(name.startswith("lo") for name in settings.interfaces)
    return LOOPBACK if only_loopback else EVERYWHERE
