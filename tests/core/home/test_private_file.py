"""Only the owner's own ordinary files are read."""

import os
import stat
from pathlib import Path

import pytest

from core.home.private_file import MAX_BYTES, make_private_folder, read_private, write_atomically, write_new
from core.vocabulary.errors import TandemError


def private(path: Path, content: bytes = b"x") -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_the_owners_file_is_read(tmp_path: Path) -> None:
    assert read_private(private(tmp_path / "a", b"content")) == b"content"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_any_permission_for_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = private(tmp_path / "a")
    path.chmod(mode)
    with pytest.raises(TandemError) as failure:
        read_private(path)
    assert failure.value.code == "wrong-mode"
    assert f"{mode:04o}" in failure.value.what


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_private(tmp_path / "a")


def test_a_folder_or_an_endless_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    private(tmp_path / "large", b"\0" * (MAX_BYTES + 1))
    for name in ("folder", "large"):
        with pytest.raises(TandemError) as failure:
            read_private(tmp_path / name)
        assert failure.value.code == "file-unusable"
        assert failure.value.fix


def test_a_file_as_large_as_allowed_is_read(tmp_path: Path) -> None:
    assert len(read_private(private(tmp_path / "a", b"\0" * MAX_BYTES))) == MAX_BYTES


def test_a_file_of_somebody_else_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = private(tmp_path / "a")
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(TandemError) as failure:
        read_private(path)
    assert failure.value.code == "wrong-owner" and "sudo chown" in failure.value.fix


def test_a_wrong_mode_is_reported_with_the_right_command(tmp_path: Path) -> None:
    path = private(tmp_path / "a")
    path.chmod(0o644)
    with pytest.raises(TandemError, match=r"chmod 600"):
        read_private(path)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(TandemError, match=r"chmod 700"):
        make_private_folder(folder)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TandemError) as failure:
        make_private_folder(tmp_path / "file" / "folder")
    assert failure.value.code == "folder-unusable"


def test_a_folder_is_made_private_with_those_above_it(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "theirs")
    (tmp_path / "ours").symlink_to(tmp_path / "theirs")
    with pytest.raises(TandemError):
        make_private_folder(tmp_path / "ours")


def test_a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(b"old")
    path.chmod(0o644)

    write_atomically(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["trust.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(b"old")
    calls = []

    def full_disk(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")

    assert calls, "the fault did not happen"
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["trust.json"]


def test_a_link_is_replaced_and_its_target_is_left_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere", tmp_path / "settings.json"
    target.write_bytes(b"theirs")
    link.symlink_to(target)

    write_atomically(link, b"ours")

    assert target.read_bytes() == b"theirs"
    assert not link.is_symlink()
    assert link.read_bytes() == b"ours"


def test_a_new_file_is_never_written_over_an_old_one_or_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(b"old")
    (tmp_path / "link.pem").symlink_to(tmp_path / "not-there")

    with pytest.raises(FileExistsError):
        write_new(tmp_path / "key.pem", b"new")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "link.pem", b"new")

    assert (tmp_path / "key.pem").read_bytes() == b"old"
    assert not (tmp_path / "not-there").exists()


def test_the_umask_does_not_change_the_mode(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        write_atomically(tmp_path / "a", b"", mode=0o640)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
