"""The trust store on disk, ``trust.json``, and while a node runs. Blocks, except for ``SavedTrust``.

Security invariant: a file with any defect trusts nobody. It is kept aside, and the user is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import structs

from core.home.certificate import check_peer_certificate, device_id, out_of_date
from core.home.private_file import read_private, sync_folder, write_atomically
from core.home.trust import TrustedPeer, TrustStore
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.permission import Permission

VERSION = 2
"""Version 1 had no walls, and recorded only a permission's files and arguments. It is still read, but
everything allowed then, including *always*, is asked about again."""
FILE = "trust.json"

_Hex = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Allowance = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}([+][0-9a-f]{64})?$")]
"""A permission of version 1: a project, and the hash of its arguments."""


class _Peer(TrustedPeer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    fp: _Hex
    approved: tuple[Permission | _Allowance, ...] = ()  # type: ignore[assignment]


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    v: int
    self_fp: _Hex
    peers: tuple[_Peer, ...] = ()
    revoked: tuple[_Hex, ...] = ()


class _Version(msgspec.Struct):
    v: int


def load(folder: Path, self_id: DeviceId) -> tuple[TrustStore, Problem | None]:
    """The store in ``folder``, and a problem for the user: the file is unusable and trusts nobody, or a
    certificate in it has expired.

    Raises ``TandemError`` where others could have written the file, or a newer Tandem did: then nothing
    starts, since going on would lose the pairings.
    """
    path = folder / FILE
    try:
        data = read_private(path)
    except FileNotFoundError:
        return TrustStore(self_id), None
    try:
        found = _read(data, path)
    except (msgspec.DecodeError, RecursionError, ValueError, TandemError) as error:
        if isinstance(error, TandemError) and error.code == "trust-newer":
            raise
        return TrustStore(self_id), _set_aside(path, "trust-corrupt", "can't be read", str(error))
    if found.self_id != self_id:
        # A copied home or a new key: the other devices pinned another certificate than ours.
        what = "belongs to another key than this device's"
        return TrustStore(self_id), _set_aside(path, "trust-of-another", what, found.self_id)
    return found, _late(found)


def names(folder: Path) -> tuple[str, ...]:
    """The paired devices' names; none where the file can't be read. Changes nothing."""
    path = folder / FILE
    try:
        return tuple(peer.name for peer in _read(read_private(path), path).peers)
    except (OSError, msgspec.DecodeError, RecursionError, ValueError, TandemError):
        return ()


def save(folder: Path, store: TrustStore) -> None:
    """Write the store so that a crash leaves the old or the new one. Raises ``TandemError``."""
    content = _File(
        v=VERSION,
        self_fp=store.self_id,
        peers=tuple(_Peer(fp=peer.device, **structs.asdict(peer)) for peer in store.peers),
        revoked=tuple(sorted(store.revoked)),
    )
    path = folder / FILE
    try:
        write_atomically(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    except OSError as error:
        raise TandemError(
            code="trust-unwritable",
            what=f"The list of paired devices can't be written to {path} ({error.strerror or error}).",
            fix="Free some space or make the folder writable; until then a restart forgets the change.",
        ) from error


def _read(data: bytes, path: Path) -> TrustStore:
    version = msgspec.json.decode(data, type=_Version).v
    if version > VERSION:
        raise TandemError(
            code="trust-newer",
            what=f"{path} was written by a newer Tandem (version {version}; this one reads {VERSION}).",
            fix=f"Update Tandem, or move {path} away and pair your devices again.",
        )
    content = msgspec.json.decode(data, type=_File)
    peers = []
    for entry in content.peers:
        check_peer_certificate(entry.cert_der)
        if device_id(entry.cert_der) != entry.fp:
            raise ValueError(f"the certificate of {entry.fp[:8]} is another device's")
        known = structs.asdict(entry)
        del known["fp"]
        known["approved"] = tuple(_permission(each) for each in entry.approved)
        if version == 1:
            known["code_policy"] = "ask"
        peers.append(TrustedPeer(**known))
    named = [peer.device for peer in peers]
    revoked = frozenset(DeviceId(fp) for fp in content.revoked)
    if len(set(named)) != len(named) or revoked & set(named) or content.self_fp in named:
        raise ValueError("a device is named twice, or both trusted and forgotten, or is this one")
    return TrustStore(DeviceId(content.self_fp), tuple(peers), revoked)


def _permission(stored: Permission | str) -> Permission:
    if isinstance(stored, Permission):
        return stored
    project, _, arguments = stored.partition("+")
    return Permission(project=ProjectId(project), arguments=arguments)


def _late(store: TrustStore) -> Problem | None:
    """The problem of paired devices with out-of-date certificates, at most five of them; None: there are
    none."""
    late = [problem for peer in store.peers if (problem := out_of_date(peer.cert_der, f"{peer.name}'s"))]
    if len(late) < 2:
        return late[0] if late else None
    return structs.replace(late[0], what=" ".join(problem.what for problem in late[:5]))


def _set_aside(path: Path, code: str, why: str, detail: str) -> Problem:
    aside = path.with_name(f"{path.stem}.{time.time_ns()}.kept.json")
    try:
        path.rename(aside)
        sync_folder(path.parent)
        where = f"It was kept as {aside.name}."
    except OSError as error:
        where = f"It could not be moved aside ({error.strerror or error})."
    return Problem(
        code=code,
        what=f"The list of paired devices {path} {why}; for now no device is trusted. {where}",
        fix="Pair your devices again, or put a good copy back and restart Tandem.",
        detail=detail,
    )


class SavedTrust:
    """The store while a node runs: changed in memory at once, on disk in order. On the core loop.

    ``on_change(before, after)`` comes before the disk write: a forgotten device is out at once.
    """

    def __init__(
        self, folder: Path, store: TrustStore, on_change: Callable[[TrustStore, TrustStore], None]
    ) -> None:
        self._folder = folder
        self._on_change = on_change
        self._writing = asyncio.Lock()
        self._written = store
        self.store = store

    async def change(self, change: Callable[[TrustStore], TrustStore]) -> None:
        """Apply a change. Returns when it is on disk. Raises ``TandemError`` if it is impossible or cannot be
        stored."""
        store = change(self.store)
        if store is not self.store:
            before, self.store = self.store, store
            self._on_change(before, store)
        async with self._writing:
            newest = self.store
            if newest is not self._written:
                await asyncio.to_thread(save, self._folder, newest)
                self._written = newest
