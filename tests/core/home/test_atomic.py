"""A crash leaves the old content or the new."""

import os
import stat
from pathlib import Path

import pytest

from core.home.atomic import write_atomically, write_new


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
