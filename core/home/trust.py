"""Which devices this one trusts: an immutable store, changed by pure functions that give a new one.

Identity is the certificate. Names, addresses and what mDNS says are hints; nothing here is decided by them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from core.home.certificate import check_peer_certificate, device_id
from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId

CodePolicy = Literal["ask", "always"]

Item = TypeVar("Item")

MAX_ADDRESS_HINTS = 6
MAX_APPROVED = 200
"""Remembered projects of one device; the oldest give way."""


@dataclass(frozen=True, slots=True)
class TrustedPeer:
    """A paired device. ``paired_at``: Unix time, seconds. ``addr_hints``: ``host:port``, the latest first."""

    cert_der: bytes
    name_at_pairing: str
    paired_at: float
    nickname: str = ""
    min_proto: int = 1
    """The lowest pairing protocol that it may be paired by again: no way back to a weaker one."""
    code_policy: CodePolicy = "ask"
    addr_hints: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    """What may run here without asking again (see ``allowance``), the latest first."""

    @property
    def device(self) -> DeviceId:
        return device_id(self.cert_der)

    @property
    def name(self) -> str:
        return self.nickname or self.name_at_pairing

    @property
    def approved_projects(self) -> tuple[ProjectId, ...]:
        """Projects (manifest hashes) that may run here, at least with some arguments."""
        return tuple(dict.fromkeys(ProjectId(each.partition("+")[0]) for each in self.approved))


@dataclass(frozen=True, slots=True)
class TrustStore:
    """All paired devices in the order of pairing, and the fingerprints that were forgotten."""

    self_id: DeviceId
    peers: tuple[TrustedPeer, ...] = ()
    revoked: frozenset[DeviceId] = frozenset()

    @property
    def pins(self) -> tuple[bytes, ...]:
        """The certificates (DER) that a link accepts, and no others."""
        return tuple(peer.cert_der for peer in self.peers)

    def peer(self, device: DeviceId) -> TrustedPeer | None:
        return next((peer for peer in self.peers if peer.device == device), None)

    def known_as(self, name: str) -> Collection[DeviceId]:
        """The devices that go by ``name``: another one of that name is warned of, or not called so."""
        wanted = name.casefold()
        return [
            peer.device
            for peer in self.peers
            if wanted in (peer.name_at_pairing.casefold(), peer.nickname.casefold())
        ]


def add(store: TrustStore, peer: TrustedPeer) -> TrustStore:
    """Trust a device after pairing. What the user decided about the same device before stays.

    Raises ``TandemError`` for this device's own or an unfit certificate.
    """
    check_peer_certificate(peer.cert_der)
    if peer.device == store.self_id:
        raise TandemError(
            code="pairing-self",
            what="That is this device's own certificate.",
            fix="Pair with another laptop.",
        )
    before = store.peer(peer.device)
    if before is not None:
        peer = replace(
            peer,
            nickname=peer.nickname or before.nickname,
            min_proto=max(peer.min_proto, before.min_proto),
            code_policy=before.code_policy,
            addr_hints=_latest_first(peer.addr_hints, before.addr_hints, MAX_ADDRESS_HINTS),
            approved=before.approved,
        )
    others = tuple(other for other in store.peers if other.device != peer.device)
    return replace(store, peers=(*others, peer), revoked=store.revoked - {peer.device})


def forget(store: TrustStore, device: DeviceId) -> TrustStore:
    """Trust a device no more. Raises ``TandemError`` where it is not paired."""
    _known(store, device)
    peers = tuple(peer for peer in store.peers if peer.device != device)
    return replace(store, peers=peers, revoked=store.revoked | {device})


def rename(store: TrustStore, device: DeviceId, nickname: str) -> TrustStore:
    """Give a device a nickname; ``""`` takes it away. Raises ``TandemError`` where it is not paired."""
    return _changed(store, replace(_known(store, device), nickname=nickname))


def set_policy(store: TrustStore, device: DeviceId, policy: CodePolicy) -> TrustStore:
    """Whether a device may run code here without asking. ``ask`` also forgets what was allowed before."""
    peer = _known(store, device)
    approved = () if policy == "ask" else peer.approved
    return _changed(store, replace(peer, code_policy=policy, approved=approved))


def allowance(project: ProjectId, arguments: Sequence[str] = ()) -> str:
    """What a user allowed: a project (manifest hash), and by their hash the arguments shown with it.

    Arguments can turn a harmless script into another one (``--output``, ``--load``).
    """
    if not arguments:
        return project
    return f"{project}+{hashlib.sha256(wire.to_json(tuple(arguments))).hexdigest()}"


def approve(
    store: TrustStore, device: DeviceId, project: ProjectId, arguments: Sequence[str] = ()
) -> TrustStore:
    """Remember that this very project of a device may run here with these arguments."""
    peer = _known(store, device)
    approved = _latest_first((allowance(project, arguments),), peer.approved, MAX_APPROVED)
    return _changed(store, replace(peer, approved=approved))


def disapprove(store: TrustStore, device: DeviceId, project: ProjectId | None = None) -> TrustStore:
    """Ask again before a project of a device runs here, with whatever arguments; for None, before any."""
    peer = _known(store, device)
    kept = tuple(each for each in peer.approved if project is not None and not each.startswith(project))
    return store if kept == peer.approved else _changed(store, replace(peer, approved=kept))


def may_run(store: TrustStore, device: DeviceId, project: ProjectId, arguments: Sequence[str] = ()) -> bool:
    """Whether a device may run a project here, with these arguments, without asking its user."""
    peer = store.peer(device)
    if peer is None:
        return False
    return peer.code_policy == "always" or allowance(project, arguments) in peer.approved


def add_hint(store: TrustStore, device: DeviceId, address: str) -> TrustStore:
    """Remember where a device was reached (``host:port``); the same store where that was known."""
    peer = _known(store, device)
    hints = _latest_first((address,), peer.addr_hints, MAX_ADDRESS_HINTS)
    return store if hints == peer.addr_hints else _changed(store, replace(peer, addr_hints=hints))


def _known(store: TrustStore, device: DeviceId) -> TrustedPeer:
    peer = store.peer(device)
    if peer is None:
        raise not_paired(device)
    return peer


def not_paired(device: DeviceId) -> TandemError:
    return TandemError(
        code="not-paired",
        what=f"No device {device[:8]} is paired with this one.",
        fix="Look at the list of devices (tandem devices), or pair it first.",
    )


def _changed(store: TrustStore, peer: TrustedPeer) -> TrustStore:
    return replace(
        store, peers=tuple(peer if other.device == peer.device else other for other in store.peers)
    )


def _latest_first(new: tuple[Item, ...], old: tuple[Item, ...], limit: int) -> tuple[Item, ...]:
    return tuple(dict.fromkeys((*new, *old)))[:limit]
