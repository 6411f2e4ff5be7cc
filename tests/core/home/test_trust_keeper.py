"""The trust store while a node runs."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from core.home import identity, trust, trust_file
from core.home.trust import TrustedPeer, TrustStore
from core.home.trust_keeper import TrustKeeper
from core.vocabulary.errors import TandemError


class Kept:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes: list[tuple[int, int]] = []
        self.me = identity.load_or_create(folder / "me").device_id
        other = identity.load_or_create(folder / "other")
        self.peer = TrustedPeer(cert_der=other.cert_der, name_at_pairing="other", paired_at=1.0)
        self.keeper = TrustKeeper(folder, TrustStore(self.me), self._on_change)

    def _on_change(self, before: TrustStore, after: TrustStore) -> None:
        self.changes.append((len(before.peers), len(after.peers)))

    def on_disk(self) -> TrustStore:
        return trust_file.load(self.folder, self.me)[0]


async def test_a_change_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    kept = Kept(tmp_path)

    await kept.keeper.change(lambda store: trust.add(store, kept.peer))

    assert kept.on_disk() == kept.keeper.store
    assert kept.on_disk().peers == (kept.peer,)
    assert kept.changes == [(0, 1)]


async def test_changes_at_once_are_all_kept_in_order(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.keeper.change(lambda store: trust.add(store, kept.peer))

    await asyncio.gather(
        *(
            kept.keeper.change(lambda store, name=name: trust.rename(store, kept.peer.device, name))  # type: ignore[misc]
            for name in ("a", "b", "c")
        ),
        kept.keeper.change(lambda store: trust.add_hint(store, kept.peer.device, "10.0.0.2:1")),
    )

    assert kept.on_disk().peers == (replace(kept.peer, nickname="c", addr_hints=("10.0.0.2:1",)),)


async def test_no_change_writes_nothing_and_tells_nobody(tmp_path: Path) -> None:
    kept = Kept(tmp_path)

    await kept.keeper.change(lambda store: store)

    assert kept.changes == []
    assert not (tmp_path / trust_file.FILE).exists()


async def test_a_forgotten_device_is_out_even_where_the_disk_refuses(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.keeper.change(lambda store: trust.add(store, kept.peer))
    kept.keeper._folder = tmp_path / "missing"

    with pytest.raises(TandemError) as failure:
        await kept.keeper.change(lambda store: trust.forget(store, kept.peer.device))

    assert failure.value.code == "trust-unwritable"
    assert kept.keeper.store.peers == ()
    assert kept.changes == [(0, 1), (1, 0)]

    kept.keeper._folder = tmp_path
    await kept.keeper.change(lambda store: store)
    assert kept.on_disk().peers == (), "what could not be written is written with the next change"
