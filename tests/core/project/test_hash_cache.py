"""Unchanged files are not read again; changed ones are, however well hidden."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from core.project import hash_cache as module
from core.project.files import ReadMeter, hash_file
from core.project.hash_cache import FOLDERS_KEPT, HashCache
from core.runtime.regular_file import NotRegular
from tests.core.project.making import write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {"a.bin": b"a" * 100, "data/b.bin": b"b"})


def cache_of(folder: Path, settled_ns: int = -(10**12)) -> HashCache:
    """As if its files had been written a while ago."""
    return HashCache(folder, folder.parent / "hashes", settled_ns)


def read(folder: Path, monkeypatch: pytest.MonkeyPatch, cache: HashCache | None = None) -> list[str]:
    """The files read to compute all hashes, which are correct."""
    cache, seen = cache or cache_of(folder), list[str]()

    def hashing(path: Path, meter: ReadMeter) -> tuple[int, str]:
        seen.append(path.name)
        return hash_file(path)

    with monkeypatch.context() as patch:
        patch.setattr(module, "hash_file", hashing)
        for path in sorted(folder.rglob("*.bin")):
            assert cache.hash_file(path.relative_to(folder).as_posix()) == hash_file(path)
    cache.save()
    return seen


def test_unchanged_files_are_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(folder, monkeypatch) == ["a.bin", "b.bin"]
    assert read(folder, monkeypatch) == []
    (folder / "data" / "b.bin").write_bytes(b"other")
    assert read(folder, monkeypatch) == ["b.bin"]
    (folder / "a.bin").unlink()
    assert read(folder, monkeypatch) == []


def test_a_change_with_the_same_size_and_the_old_time_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(folder, monkeypatch)
    path = folder / "a.bin"
    before = path.stat()
    time.sleep(0.02)
    path.write_bytes(b"c" * 100)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read(folder, monkeypatch) == ["a.bin"]
    (folder / "new").write_bytes(b"d" * 100)
    os.utime(folder / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "new").rename(path)
    assert read(folder, monkeypatch) == ["a.bin"]


def test_a_recently_written_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may change again within the same tick of the file system's clock."""
    folder = write(tmp_path / "project", {"a.bin": b"a"})
    for _ in range(2):
        assert read(folder, monkeypatch, cache_of(folder, module.SETTLED_NS)) == ["a.bin"]


def test_a_file_that_changes_while_it_is_read_is_not_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_of(folder)

    def hashing(path: Path, meter: ReadMeter) -> tuple[int, str]:
        found = hash_file(path)
        path.write_bytes(b"changed")
        return found

    monkeypatch.setattr(module, "hash_file", hashing)
    cache.hash_file("a.bin")
    cache.save()
    assert cache._now == {}


def test_a_link_is_refused_even_if_it_was_cached_as_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(folder, monkeypatch)
    (folder / "a.bin").unlink()
    (folder / "a.bin").symlink_to(folder / "data" / "b.bin")
    with pytest.raises(NotRegular):
        cache_of(folder).hash_file("a.bin")


@pytest.mark.parametrize("damaged", [b"", b"\xc1", b"\x81\xa5a.bin\x01"])
def test_a_damaged_cache_only_costs_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damaged: bytes
) -> None:
    read(folder, monkeypatch)
    (record,) = (folder.parent / "hashes").iterdir()
    record.write_bytes(damaged)
    assert read(folder, monkeypatch) == ["a.bin", "b.bin"]
    assert read(folder, monkeypatch) == []


def test_the_newest_folders_are_kept_and_nobody_else_reads_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder.parent / "hashes"
    place.mkdir(mode=0o700)
    for number in range(FOLDERS_KEPT):
        (place / f"{number}").touch()
        os.utime(place / f"{number}", (number, number))
    read(folder, monkeypatch)
    names = {path.name for path in place.iterdir()}
    assert len(names) == FOLDERS_KEPT and "0" not in names and "1" in names
    if os.name == "posix":
        (record,) = (path for path in place.iterdir() if len(path.name) == 32)
        assert record.stat().st_mode & 0o77 == 0


def test_an_unwritable_cache_only_costs_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "hashes").write_bytes(b"a file stands there")
    assert read(folder, monkeypatch) == read(folder, monkeypatch) == ["a.bin", "b.bin"]
