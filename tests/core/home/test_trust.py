"""Who is trusted, and what is remembered about them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from core.home.certificate import device_id
from core.home.trust import (
    MAX_ADDRESS_HINTS,
    MAX_APPROVED,
    TrustedPeer,
    TrustStore,
    add,
    add_hint,
    approve,
    forget,
    may_run,
    rename,
    set_policy,
)
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.permission import Permission, hash_of
from tests.core.certificates import device_certificate, odd_certificate

SELF, ANNA, BERT = (device_certificate(number) for number in (1, 2, 3))
EMPTY = TrustStore(device_id(SELF))
PEER = TrustedPeer(cert_der=ANNA, name_at_pairing="Anna's laptop", paired_at=1.0)
STORE = add(EMPTY, PEER)
ID = PEER.device
PROJECT = ProjectId("a" * 64)


def asks(project: ProjectId = PROJECT, *arguments: str, **reach: Any) -> Permission:
    known: dict[str, Any] = {"strategy": "managed", "network": "open", "walls": "none", **reach}
    return Permission(project=project, arguments=hash_of(arguments), **known)


def test_a_paired_device_is_pinned() -> None:
    assert EMPTY.pins == ()
    assert STORE.pins == (ANNA,)
    assert STORE.peer(ID) == PEER
    assert EMPTY.peers == (), "stores are never changed in place"


def test_a_peer_with_a_new_certificate_is_not_trusted() -> None:
    """Invariant: the same name with another key is another device, and replaces nobody."""
    impostor = replace(PEER, cert_der=BERT)
    assert STORE.peer(impostor.device) is None
    assert list(STORE.known_as("Anna's laptop")) == [ID]
    both = add(STORE, impostor)
    assert both.pins == (ANNA, BERT)


@pytest.mark.parametrize("cert", [SELF, odd_certificate(ca=True), b"x"])
def test_invariant_an_unfit_certificate_is_never_pinned(cert: bytes) -> None:
    with pytest.raises(TandemError):
        add(STORE, replace(PEER, cert_der=cert))


def test_a_forgotten_device_is_revoked_until_it_is_paired_again() -> None:
    store = forget(STORE, ID)
    assert store.pins == ()
    assert store.revoked == {ID}
    store = add(store, PEER)
    assert store.pins == (ANNA,)
    assert store.revoked == frozenset()


def test_forgetting_a_device_removes_the_users_decisions() -> None:
    store = set_policy(approve(STORE, ID, asks()), ID, "always")
    store = add(forget(store, ID), PEER)
    assert store.peer(ID) == PEER


def test_a_nickname_precedes_the_name_and_can_be_removed() -> None:
    store = rename(STORE, ID, "Anna")
    assert store.peers[0].name == "Anna"
    assert list(store.known_as("Anna")) == list(store.known_as("Anna's laptop")) == [ID]
    assert list(store.known_as("ANNA")) == [ID]
    assert rename(store, ID, "").peers[0].name == "Anna's laptop"


def test_nothing_may_run_unasked_until_the_user_says_so() -> None:
    assert not may_run(EMPTY, ID, asks())
    assert not may_run(STORE, ID, asks())
    assert may_run(set_policy(STORE, ID, "always"), ID, asks())


def test_an_approved_project_runs_again_and_a_changed_one_asks() -> None:
    store = approve(STORE, ID, asks())
    assert may_run(store, ID, asks())
    assert not may_run(store, ID, asks(ProjectId("b" * 64)))
    assert not may_run(set_policy(store, ID, "ask"), ID, asks())


def test_a_script_allowed_with_some_arguments_asks_again_with_others() -> None:
    store = approve(STORE, ID, asks(PROJECT, "--epochs", "3"))
    assert may_run(store, ID, asks(PROJECT, "--epochs", "3"))
    for others in ((), ("--epochs", "4"), ("--epochs 3",), ("--epochs", "3", "")):
        assert not may_run(store, ID, asks(PROJECT, *others))
    assert store.peers[0].approved_projects == (PROJECT,)
    assert may_run(set_policy(store, ID, "always"), ID, asks(PROJECT, "anything"))


def test_a_wider_permission_covers_and_replaces_a_narrower_one() -> None:
    sealed, downloads = (asks(strategy="own", network=network) for network in ("none", "downloads"))
    store = approve(STORE, ID, sealed)
    assert may_run(store, ID, sealed) and not may_run(store, ID, downloads)
    store = approve(store, ID, downloads)
    assert may_run(store, ID, sealed) and may_run(store, ID, downloads)
    assert store.peers[0].approved == (downloads,)


def test_always_is_limited_to_the_walls_that_this_laptop_had() -> None:
    store = set_policy(STORE, ID, "always", "default")
    assert may_run(store, ID, asks(walls="default"))
    for wider in (asks(walls="none"), asks(walls="default", folders=("/home/ben/Pictures",))):
        assert not may_run(store, ID, wider)
        assert may_run(approve(store, ID, wider), ID, wider), "it was asked about"


def test_remembered_values_are_limited() -> None:
    store = STORE
    for number in range(MAX_APPROVED + 5):
        store = approve(store, ID, asks(ProjectId(f"{number:064x}")))
    for number in range(MAX_ADDRESS_HINTS + 5):
        store = add_hint(store, ID, f"10.0.0.{number}:27600")
    [peer] = store.peers
    assert len(peer.approved) == MAX_APPROVED
    assert len(peer.addr_hints) == MAX_ADDRESS_HINTS
    assert peer.addr_hints[0] == f"10.0.0.{MAX_ADDRESS_HINTS + 4}:27600"


def test_a_known_address_changes_nothing() -> None:
    store = add_hint(STORE, ID, "10.0.0.1:27600")
    assert add_hint(store, ID, "10.0.0.1:27600") is store


@pytest.mark.parametrize(
    "change",
    [
        lambda store, device: forget(store, device),
        lambda store, device: rename(store, device, "x"),
        lambda store, device: set_policy(store, device, "always"),
        lambda store, device: approve(store, device, asks()),
        lambda store, device: add_hint(store, device, "a:1"),
    ],
)
def test_a_device_that_is_not_paired_is_named(change: object) -> None:
    with pytest.raises(TandemError) as failure:
        change(STORE, DeviceId("f" * 64))  # type: ignore[operator]
    assert failure.value.code == "not-paired"
    assert "ffffffff" in failure.value.what


def test_a_device_goes_by_its_nickname_where_it_has_one() -> None:
    renamed = rename(STORE, ID, "desk").peer(ID)
    assert renamed is not None and renamed.name == "desk"
    assert PEER.name == "Anna's laptop"


def test_a_name_is_known_whatever_its_case_and_whether_given_or_said() -> None:
    store = rename(STORE, ID, "Desk")
    for name in ("desk", "DESK", "anna's LAPTOP"):
        assert list(store.known_as(name)) == [ID]
    assert list(store.known_as("d\u0435sk")) == [ID], "with a Cyrillic letter"
    assert list(store.known_as("bert")) == []


def test_a_change_of_one_device_leaves_the_others_as_they_are() -> None:
    bert = TrustedPeer(cert_der=BERT, name_at_pairing="Bert", paired_at=2.0)
    both = add(STORE, bert)
    after = rename(set_policy(approve(both, bert.device, asks()), ID, "always"), ID, "desk")
    assert [peer.device for peer in after.peers] == [ID, bert.device]
    changed, kept = after.peers
    assert (changed.nickname, changed.code_policy, changed.approved) == ("desk", "always", ())
    assert (kept.nickname, kept.code_policy, kept.approved_projects) == ("", "ask", (PROJECT,))
    assert may_run(after, bert.device, asks()) and not may_run(after, bert.device, asks(ProjectId("b" * 64)))


def test_a_stranger_may_run_nothing() -> None:
    assert may_run(EMPTY, ID, asks()) is False


def test_a_device_paired_again_keeps_what_its_user_decided() -> None:
    before = add_hint(approve(set_policy(rename(STORE, ID, "desk"), ID, "always"), ID, asks()), ID, "a:1")
    again = TrustedPeer(cert_der=ANNA, name_at_pairing="new", paired_at=9.0, addr_hints=("b:2",))
    peer = add(before, again).peer(ID)
    assert peer is not None
    assert (peer.name_at_pairing, peer.paired_at, peer.nickname) == ("new", 9.0, "desk")
    assert (peer.code_policy, peer.approved_projects, peer.addr_hints) == (
        "always",
        (PROJECT,),
        ("b:2", "a:1"),
    )


def test_the_latest_address_changes_nothing_and_an_older_one_moves_to_the_front() -> None:
    store = add_hint(add_hint(STORE, ID, "a:1"), ID, "b:2")
    peer = store.peer(ID)
    assert peer is not None and peer.addr_hints == ("b:2", "a:1")
    assert add_hint(store, ID, "b:2") is store
    peer = add_hint(store, ID, "a:1").peer(ID)
    assert peer is not None and peer.addr_hints == ("a:1", "b:2")
