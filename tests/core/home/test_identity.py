"""A device keeps its key private, or does not start."""

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from core.home.certificate import check_peer_certificate
from core.home.identity import load_or_create
from core.vocabulary.errors import TandemError


def refusal(folder: Path) -> TandemError:
    with pytest.raises(TandemError) as failure:
        load_or_create(folder)
    assert failure.value.fix
    return failure.value


def test_an_identity_is_made_once_and_kept(tmp_path: Path) -> None:
    first = load_or_create(tmp_path / "identity")
    second = load_or_create(tmp_path / "identity")

    assert first == second
    assert first.device_id == first.fingerprint.hex()
    check_peer_certificate(first.cert_der)


def test_two_homes_are_two_devices(tmp_path: Path) -> None:
    assert load_or_create(tmp_path / "a").device_id != load_or_create(tmp_path / "b").device_id


def test_the_key_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        identity = load_or_create(tmp_path / "identity")
    finally:
        os.umask(before)
    assert stat.S_IMODE(identity.key_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(identity.key_path.parent.stat().st_mode) == 0o700


def test_a_key_that_others_can_read_is_refused_with_the_fix(tmp_path: Path) -> None:
    identity = load_or_create(tmp_path)
    identity.key_path.chmod(0o644)

    error = refusal(tmp_path)

    assert error.code == "wrong-mode"
    assert f"chmod 600 '{identity.key_path}'" in error.fix


def test_a_folder_that_others_can_enter_is_refused_with_the_fix(tmp_path: Path) -> None:
    load_or_create(tmp_path / "identity")
    (tmp_path / "identity").chmod(0o755)

    error = refusal(tmp_path / "identity")

    assert error.code == "wrong-mode"
    assert "chmod 700" in error.fix


def test_another_users_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_or_create(tmp_path)
    someone_else = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: someone_else)

    assert refusal(tmp_path).code == "wrong-owner"


def test_a_key_behind_a_link_is_refused(tmp_path: Path) -> None:
    theirs = load_or_create(tmp_path / "theirs")
    ours = load_or_create(tmp_path / "ours")
    ours.key_path.unlink()
    ours.key_path.symlink_to(theirs.key_path)

    assert refusal(tmp_path / "ours").code == "file-unusable"


def test_a_pipe_in_the_keys_place_is_refused_at_once(tmp_path: Path) -> None:
    identity = load_or_create(tmp_path)
    identity.key_path.unlink()
    os.mkfifo(identity.key_path, 0o600)

    assert refusal(tmp_path).code == "file-unusable"


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----"]
)
def test_a_corrupt_key_is_refused_and_left_where_it_is(tmp_path: Path, content: bytes) -> None:
    identity = load_or_create(tmp_path)
    identity.key_path.write_bytes(content)

    assert refusal(tmp_path).code == "identity-corrupt"
    assert identity.key_path.read_bytes() == content


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    identity = load_or_create(tmp_path)
    other = ec.generate_private_key(ec.SECP256R1())
    identity.key_path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    assert refusal(tmp_path).code == "identity-corrupt"


@pytest.mark.parametrize("content", [b"", b"garbage", "é".encode(), b"-----BEGIN CERTIFICATE-----\nAA==\n"])
def test_a_corrupt_certificate_is_refused(tmp_path: Path, content: bytes) -> None:
    identity = load_or_create(tmp_path)
    identity.cert_path.write_bytes(content)

    assert refusal(tmp_path).code == "identity-corrupt"


def test_a_lost_certificate_comes_back_with_the_same_fingerprint(tmp_path: Path) -> None:
    identity = load_or_create(tmp_path)
    identity.cert_path.unlink()

    assert load_or_create(tmp_path) == identity
    assert identity.cert_path.exists()


def test_a_lost_key_is_never_replaced_automatically(tmp_path: Path) -> None:
    identity = load_or_create(tmp_path)
    identity.key_path.unlink()

    assert refusal(tmp_path).code == "key-missing"
    assert not identity.key_path.exists()


def test_the_certificate_of_another_key_is_refused(tmp_path: Path) -> None:
    other = load_or_create(tmp_path / "other")
    ours = load_or_create(tmp_path / "ours")
    ours.cert_path.write_bytes(other.cert_path.read_bytes())

    assert refusal(tmp_path / "ours").code == "identity-mismatch"


def test_a_home_that_cant_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    assert refusal(tmp_path / "file" / "identity").code == "folder-unusable"


def test_a_full_disk_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def full_disk(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        failure = refusal(tmp_path / "identity")
        assert failure.code == "identity-unwritable"
        assert "(No space left on device)" in failure.what

    assert calls, "the fault did not happen"
    assert list((tmp_path / "identity").iterdir()) == []
    load_or_create(tmp_path / "identity")
