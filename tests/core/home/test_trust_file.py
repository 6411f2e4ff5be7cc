"""The trust store survives a restart; a damaged one trusts nobody."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.home import identity, trust, trust_file
from core.home.certificate import device_id
from core.home.trust import TrustedPeer, TrustStore
from core.home.trust_file import FILE, SavedTrust, load, save
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.permission import Permission, hash_of
from tests.core.certificates import device_certificate, device_key, odd_certificate

SELF = device_id(device_certificate(1))


def full_store() -> TrustStore:
    anna = TrustedPeer(
        cert_der=device_certificate(2),
        name_at_pairing="Anna's laptop",
        paired_at=1763750000.5,
        nickname="Änna",
        code_policy="always",
        addr_hints=("10.0.0.2:27600", "[fe80::1]:27600"),
        approved=(
            Permission(
                project=ProjectId("a" * 64),
                arguments=hash_of(("--epochs", "3")),
                strategy="own",
                network="none",
            ),
            Permission(project=ProjectId("b" * 64), strategy="managed", network="open", walls="none"),
        ),
    )
    bert = TrustedPeer(cert_der=device_certificate(3), name_at_pairing="Bert", paired_at=1.0)
    store = trust.add(trust.add(TrustStore(SELF), anna), bert)
    return trust.forget(store, bert.device)


def kept(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.glob("*.kept.json")]


def test_without_a_file_nobody_is_trusted_and_nothing_is_said(tmp_path: Path) -> None:
    assert load(tmp_path, SELF) == (TrustStore(SELF), None)


def test_a_store_survives_a_restart_and_is_private(tmp_path: Path) -> None:
    save(tmp_path, full_store())
    assert load(tmp_path, SELF) == (full_store(), None)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def damaged(change: str) -> bytes:
    content = json.loads(saved_bytes())
    peer = content["peers"][0]
    match change:
        case "another's certificate":
            peer["fp"] = "0" * 64
        case "authority":
            der = odd_certificate(ca=True)
            peer["cert_b64"], peer["fp"] = base64.b64encode(der).decode(), device_id(der)
        case "twice":
            content["peers"].append(peer)
        case "trusted and forgotten":
            content["revoked"].append(peer["fp"])
        case "unknown field":
            peer["admin"] = True
        case "unknown policy":
            peer["code_policy"] = "everything"
        case "no certificate":
            del peer["cert_b64"]
    return json.dumps(content).encode()


def saved_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), full_store())
        return (Path(folder) / FILE).read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b"{",
        b"{}",
        b"[]",
        b'{"v":1}',
        b'{"v":"1"}',
        b"[" * 100_000,
        saved_bytes()[:-20],
        damaged("another's certificate"),
        damaged("authority"),
        damaged("twice"),
        damaged("trusted and forgotten"),
        damaged("unknown field"),
        damaged("unknown policy"),
        damaged("no certificate"),
    ],
    ids=lambda content: content[:12],
)
def test_invariant_a_corrupt_store_trusts_nobody_says_so_and_is_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    (tmp_path / FILE).chmod(0o600)

    store, problem = load(tmp_path, SELF)

    assert store == TrustStore(SELF)
    assert problem is not None
    assert problem.code == "trust-corrupt"
    assert "no device is trusted" in problem.what
    assert problem.fix
    assert kept(tmp_path) == [content]
    save(tmp_path, full_store())
    assert kept(tmp_path) == [content]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_flipped_byte_makes_another_device_trusted(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("trust")
    content = bytearray(saved_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / FILE).write_bytes(content)
    (folder / FILE).chmod(0o600)
    try:
        store, _ = load(folder, SELF)
    except TandemError as error:
        assert error.code == "trust-newer"
        return
    assert set(store.pins) <= {device_certificate(2)}


def test_the_store_of_another_key_trusts_nobody(tmp_path: Path) -> None:
    save(tmp_path, full_store())
    other = DeviceId("e" * 64)
    store, problem = load(tmp_path, other)
    assert store == TrustStore(other)
    assert problem is not None
    assert problem.code == "trust-of-another"
    assert len(kept(tmp_path)) == 1


def test_a_newer_tandems_store_is_neither_read_nor_touched(tmp_path: Path) -> None:
    content = b'{"v": 3, "peers": "whatever"}'
    (tmp_path / FILE).write_bytes(content)
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(TandemError) as failure:
        load(tmp_path, SELF)
    assert failure.value.code == "trust-newer"
    assert (tmp_path / FILE).read_bytes() == content


def test_permissions_of_an_older_tandem_are_read_and_asked_about_again(tmp_path: Path) -> None:
    content = json.loads(saved_bytes())
    arguments = hash_of(("--epochs", "3"))
    content["v"] = 1
    del content["peers"][0]["always_within"]
    assert content["peers"][0]["code_policy"] == "always"
    content["peers"][0]["approved"] = [f"{'a' * 64}+{arguments}", "b" * 64]
    (tmp_path / FILE).write_text(json.dumps(content))
    (tmp_path / FILE).chmod(0o600)

    store, problem = load(tmp_path, SELF)

    [peer] = store.peers
    assert problem is None and peer.approved_projects == ("a" * 64, "b" * 64)
    for project, hashed in (("a" * 64, arguments), ("b" * 64, "")):
        again = Permission(project=ProjectId(project), arguments=hashed, strategy="managed")
        assert not trust.may_run(store, peer.device, again)
    save(tmp_path, store)
    assert load(tmp_path, SELF) == (store, None)


def test_invariant_a_store_that_others_can_write_is_refused_with_the_fix(tmp_path: Path) -> None:
    save(tmp_path, full_store())
    (tmp_path / FILE).chmod(0o666)
    with pytest.raises(TandemError) as failure:
        load(tmp_path, SELF)
    assert failure.value.code == "wrong-mode"
    assert "chmod 600" in failure.value.fix


def test_a_full_disk_keeps_the_old_store_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, full_store())
    calls = []

    def full_disk(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(TandemError) as failure:
            save(tmp_path, TrustStore(SELF))
    assert calls, "the fault did not happen"
    assert failure.value.code == "trust-unwritable"
    assert load(tmp_path, SELF) == (full_store(), None)


class Kept:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes: list[tuple[int, int]] = []
        self.me = identity.load_or_create(folder / "me").device_id
        other = identity.load_or_create(folder / "other")
        self.peer = TrustedPeer(cert_der=other.cert_der, name_at_pairing="other", paired_at=1.0)
        self.keeper = SavedTrust(folder, TrustStore(self.me), self._on_change)

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


def test_an_expired_certificate_is_reported_when_it_is_read_and_no_device_is_forgotten(
    tmp_path: Path,
) -> None:
    store = full_store()
    for number, years in enumerate(((2000, 2001), (2000, 2020))):
        der = odd_certificate(key=device_key(50 + number), years=years)
        store = trust.add(store, TrustedPeer(cert_der=der, name_at_pairing=f"late {number}", paired_at=1.0))
    save(tmp_path, store)
    found, problem = load(tmp_path, SELF)
    assert found == store
    assert problem is not None and problem.code == "certificate-expired" and problem.fix
    assert "late 0's certificate expired on 2001-01-01" in problem.what
    assert "late 1's certificate expired on 2020-01-01" in problem.what
    assert "Änna" not in problem.what
