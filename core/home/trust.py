"""The devices that this one trusts: an immutable store, and pure functions that return changed ones.

A device's identity is its certificate. Names, addresses and mDNS records are hints; they decide nothing here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import msgspec
from msgspec import structs

from core.home.certificate import check_peer_certificate, device_id
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.lookalikes import skeleton
from core.vocabulary.permission import Permission, Walls, covers

CodePolicy = Literal["ask", "always"]

Item = TypeVar("Item")

MAX_ADDRESS_HINTS = 6
MAX_APPROVED = 200
"""Remembered projects of one device; the oldest are dropped."""


class TrustedPeer(msgspec.Struct, frozen=True):
    """A paired device. ``paired_at``: Unix time, seconds. ``addr_hints``: ``host:port``, the latest first."""

    cert_der: bytes = msgspec.field(name="cert_b64")
    name_at_pairing: str
    paired_at: float
    nickname: str = ""
    min_proto: int = 1
    """The lowest pairing protocol for pairing it again: it never falls back to a weaker one."""
    code_policy: CodePolicy = "ask"
    always_within: Walls = "none"
    """Under the policy ``always``, its code runs here inside these walls. The user is asked about more."""
    addr_hints: tuple[str, ...] = ()
    approved: tuple[Permission, ...] = ()
    """Permissions to run here without asking again, the latest first."""

    @property
    def device(self) -> DeviceId:
        return device_id(self.cert_der)

    @property
    def name(self) -> str:
        return self.nickname or self.name_at_pairing

    @property
    def approved_projects(self) -> tuple[ProjectId, ...]:
        """Projects (manifest hashes) that may run here, at least with some arguments."""
        return tuple(dict.fromkeys(each.project for each in self.approved))


@dataclass(frozen=True, slots=True)
class TrustStore:
    """All paired devices in the order of pairing, and forgotten fingerprints."""

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
        """Devices with a name that looks like ``name``, for warnings and to keep names distinct."""
        wanted = skeleton(name)
        return [
            peer.device
            for peer in self.peers
            if wanted in (skeleton(peer.name_at_pairing), skeleton(peer.nickname))
        ]


def add(store: TrustStore, peer: TrustedPeer) -> TrustStore:
    """Trust a device after pairing. The user's earlier decisions about the same device stay.

    Raises ``TandemError`` for this device's own certificate or an invalid one.
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
        peer = structs.replace(
            peer,
            nickname=peer.nickname or before.nickname,
            min_proto=max(peer.min_proto, before.min_proto),
            code_policy=before.code_policy,
            always_within=before.always_within,
            addr_hints=_latest_first(peer.addr_hints, before.addr_hints, MAX_ADDRESS_HINTS),
            approved=before.approved,
        )
    others = tuple(other for other in store.peers if other.device != peer.device)
    return replace(store, peers=(*others, peer), revoked=store.revoked - {peer.device})


def forget(store: TrustStore, device: DeviceId) -> TrustStore:
    """Stop trusting a device. Raises ``TandemError`` where it is not paired."""
    _known(store, device)
    peers = tuple(peer for peer in store.peers if peer.device != device)
    return replace(store, peers=peers, revoked=store.revoked | {device})


def rename(store: TrustStore, device: DeviceId, nickname: str) -> TrustStore:
    """Give a device a nickname; ``""`` removes it. Raises ``TandemError`` where it is not paired."""
    return _changed(store, structs.replace(_known(store, device), nickname=nickname))


def set_policy(store: TrustStore, device: DeviceId, policy: CodePolicy, within: Walls = "none") -> TrustStore:
    """Whether a device may run code here without asking. ``ask`` also forgets earlier permissions.

    ``within``: this laptop's walls, to which ``always`` is limited.
    """
    peer = _known(store, device)
    approved = () if policy == "ask" else peer.approved
    return _changed(store, structs.replace(peer, code_policy=policy, always_within=within, approved=approved))


def approve(store: TrustStore, device: DeviceId, permission: Permission) -> TrustStore:
    """Remember a permission for a device, in place of any that it covers."""
    peer = _known(store, device)
    wider = [each for each in peer.approved if not covers(permission, each)]
    return _changed(store, structs.replace(peer, approved=(permission, *wider)[:MAX_APPROVED]))


def may_run(store: TrustStore, device: DeviceId, asked: Permission) -> bool:
    """Whether a device may run this here without asking its user."""
    peer = store.peer(device)
    if peer is None:
        return False
    always = structs.replace(asked, walls=peer.always_within, folders=(), writes=())
    allowed = (always, *peer.approved) if peer.code_policy == "always" else peer.approved
    return any(covers(each, asked) for each in allowed)


def add_hint(store: TrustStore, device: DeviceId, address: str) -> TrustStore:
    """Remember a device's address (``host:port``); returns the same store if it was known."""
    peer = _known(store, device)
    hints = _latest_first((address,), peer.addr_hints, MAX_ADDRESS_HINTS)
    return store if hints == peer.addr_hints else _changed(store, structs.replace(peer, addr_hints=hints))


def _known(store: TrustStore, device: DeviceId) -> TrustedPeer:
    peer = store.peer(device)
    if peer is None:
        raise not_paired(device)
    return peer


def not_paired(device: DeviceId) -> TandemError:
    return TandemError(
        code="not-paired",
        what=f"No device {device[:8]} is paired with this one.",
        fix="See the list of devices (tandem devices), or pair it first.",
    )


def _changed(store: TrustStore, peer: TrustedPeer) -> TrustStore:
    return replace(
        store, peers=tuple(peer if other.device == peer.device else other for other in store.peers)
    )


def _latest_first(new: tuple[Item, ...], old: tuple[Item, ...], limit: int) -> tuple[Item, ...]:
    return tuple(dict.fromkeys((*new, *old)))[:limit]
