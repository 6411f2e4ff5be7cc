"""Data that a script reads: read once, kept here, and found again."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project import data as module
from core.project import hash_cache
from core.project.data import LocalData, find_again, left_behind, read_data
from core.project.files import ReadMeter, hash_file
from core.project.store import ProjectStore
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from tests.core.project.making import pieces, write

PHOTOS: dict[str, bytes | str] = {"cats/0.jpg": "a cat", "cats/1.jpg": "another", "dog.jpg": "a dog"}
EIO = OSError(errno.EIO, "Input/output error")


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    return ProjectStore(tmp_path / "home" / "projects")


def kept(store: ProjectStore, tmp_path: Path, path: Path) -> LocalData:
    """Data at ``path``, after it came into the store."""
    local = read_data("photos", path, tmp_path)
    receipt = store.receive(local.manifest)
    for piece in pieces(Path(local.folder), local.manifest, receipt.wanted):
        receipt.take(piece)
    store.add(receipt)
    return local


@pytest.mark.parametrize("name", [".data.bin", "Thumbs.db", "data.bin"])
def test_one_file_is_found_again_whatever_its_name(tmp_path: Path, store: ProjectStore, name: str) -> None:
    local = kept(store, tmp_path, write(tmp_path / "source", {name: "numbers"}) / name)
    place = store.find_data(local.data)
    assert place is not None and (place.name, place.read_bytes()) == (name, b"numbers")


def test_a_folder_with_too_many_files_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "photos", PHOTOS)
    monkeypatch.setattr(
        module, "hash_file", lambda path, meter: pytest.fail("nothing is read of what is too large")
    )
    with pytest.raises(TandemError) as refused:
        read_data("photos", folder, tmp_path, most_files=2)
    assert "it contains 3 files, and at most 2 can be sent" in refused.value.what
    assert "name its subfolders instead (8 at most)" in refused.value.fix
    assert ".tandemignore" not in refused.value.fix, "a data folder has none"


@pytest.mark.parametrize("fails", ["reading", "listing"])
def test_data_that_is_temporarily_unreadable_is_kept(
    tmp_path: Path, store: ProjectStore, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    local = kept(store, tmp_path, write(tmp_path / "photos", PHOTOS))
    scandir = os.scandir

    def read(path: Path, meter: object) -> tuple[int, str]:
        raise EIO

    def listed(path: Path) -> object:
        if Path(path).name == "cats":
            raise EIO
        return scandir(path)

    with monkeypatch.context() as broken:
        if fails == "reading":
            broken.setattr(module, "hash_file", read)
        else:
            broken.setattr(os, "scandir", listed)
        with pytest.raises(TandemError, match=r"The data photos, .* cannot be read at the moment"):
            store.find_data(local.data)
    assert store.find_data(local.data) is not None


def exchange(path: Path) -> None:
    """For a link to the same content."""
    path.rename(path.parent.parent.parent / "moved")
    path.symlink_to(path.parent.parent.parent / "moved")


@pytest.mark.parametrize(
    "alter",
    [
        lambda place: (place / "dog.jpg").write_text("a cat"),
        lambda place: (place / "dog.jpg").unlink(),
        lambda place: (place / "new.jpg").write_text("new"),
        lambda place: exchange(place / "dog.jpg"),
        lambda place: exchange(place / "cats"),
    ],
    ids=["changed", "gone", "more", "a link", "a linked folder"],
)
def test_altered_data_is_deleted(
    tmp_path: Path, store: ProjectStore, alter: Callable[[Path], object]
) -> None:
    local = kept(store, tmp_path, write(tmp_path / "photos", PHOTOS))
    digest = ProjectId(local.data.listing.digest)
    alter(tmp_path / "home" / "projects" / digest)
    assert store.find_data(local.data) is None
    assert not store.has(digest)


def test_a_folder_of_one_file_is_deleted_if_another_was_added(tmp_path: Path, store: ProjectStore) -> None:
    local = kept(store, tmp_path, write(tmp_path / "photos", {"dog.jpg": "a dog"}))
    digest = ProjectId(local.data.listing.digest)
    assert store.find_data(local.data) is not None
    write(tmp_path / "home" / "projects" / digest, {"new.jpg": "new"})
    assert store.find_data(local.data) is None
    assert not store.has(digest)


@pytest.mark.parametrize("replaced_by", ["nothing", "a link", "a folder"])
def test_a_single_file_is_deleted_once_it_is_no_longer_a_file(
    tmp_path: Path, store: ProjectStore, replaced_by: str
) -> None:
    source = write(tmp_path / "source", {"data.bin": "numbers"}) / "data.bin"
    local = kept(store, tmp_path, source)
    digest = ProjectId(local.data.listing.digest)
    place = tmp_path / "home" / "projects" / digest / "data.bin"
    place.unlink()
    if replaced_by == "a link":
        place.symlink_to(source)
    elif replaced_by == "a folder":
        write(place, {"data.bin": "numbers"})
    assert store.find_data(local.data) is None
    assert not store.has(digest)


def test_one_file_is_read_once_and_the_hashes_of_its_folder_stay_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, hashes, reads = write(tmp_path / "photos", PHOTOS), tmp_path / "hashes", list[str]()
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + 10 * hash_cache.SETTLED_NS)

    def counted(path: Path, *meter: object) -> tuple[int, str]:
        reads.append(path.name)
        return hash_file(path)

    monkeypatch.setattr(module, "hash_file", counted)
    monkeypatch.setattr(hash_cache, "hash_file", counted)
    first = read_data("dog", folder / "dog.jpg", tmp_path, hashes)
    read_data("photos", folder, tmp_path, hashes)
    reads.clear()
    assert read_data("dog", folder / "dog.jpg", tmp_path, hashes) == first
    read_data("photos", folder, tmp_path, hashes)
    assert reads == []
    (folder / "dog.jpg").write_text("a dog that grew")
    assert read_data("dog", folder / "dog.jpg", tmp_path, hashes) != first


def test_whether_data_of_others_may_carry_code_is_decided_by_its_files(tmp_path: Path) -> None:
    place = write(tmp_path / "photos", PHOTOS | {"labels.pkl": "a pickle"})
    local = read_data("photos", place, tmp_path)
    assert local.data.has_code
    claimed = replace(local.data, has_code=False)
    again = find_again(claimed, place)
    assert again is not None and again.data.has_code


def test_finding_data_again_reports_progress(store: ProjectStore, tmp_path: Path) -> None:
    local = kept(store, tmp_path, write(tmp_path / "photos", PHOTOS))
    told: list[tuple[int, int]] = []
    meter = ReadMeter(lambda done, total: told.append((done, total)), every_s=0)
    assert store.find_data(local.data, meter=meter) is not None
    assert told[-1] == (local.data.total_bytes, local.data.total_bytes)


def test_what_cannot_travel_is_reported(tmp_path: Path, store: ProjectStore) -> None:
    deep = "/".join(["a" * 200] * 6)
    folder = write(tmp_path / "photos", {**PHOTOS, "at 12:30.jpg": "a dog", f"{deep}/1.jpg": "a dog"})
    (folder / "link.jpg").symlink_to(folder / "dog.jpg")
    (folder / ".hidden").write_text("as documented")
    local = kept(store, tmp_path, folder)
    assert [file.path for file in local.manifest.files] == sorted(PHOTOS)
    whys = {each.path[:8]: each.why for each in local.skipped}
    assert "not every system can store" in whys["at 12:30"]
    assert (whys["link.jpg"], whys["a" * 8]) == ("it is a link", "its path is longer than 1024 bytes")
    told = left_behind(local)
    assert "The data photos is sent without at 12:30.jpg (" in told.what
    assert "and without 2 more" in told.what


def test_names_that_collide_on_some_systems_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "photos", {"Dog.jpg": "a dog", "dog.JPG": "another"})
    with pytest.raises(TandemError) as refused:
        read_data("photos", folder, tmp_path)
    assert "Dog.jpg and dog.JPG have the same name on some systems" in refused.value.what
    assert refused.value.fix == "Rename one of them."


def test_two_names_of_one_file_become_two_files(tmp_path: Path, store: ProjectStore) -> None:
    folder = write(tmp_path / "photos", PHOTOS)
    os.link(folder / "dog.jpg", folder / "cats" / "dog too.jpg")
    local = kept(store, tmp_path, folder)
    place = store.find_data(local.data)
    assert place is not None
    there = [place / "dog.jpg", place / "cats" / "dog too.jpg"]
    assert [path.read_text() for path in there] == ["a dog"] * 2


def test_a_file_of_another_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = (
        write(tmp_path / name, {"mnist.npz": name}) / "mnist.npz" for name in ("here", "elsewhere")
    )
    data = read_data("mnist.npz", there, tmp_path).data
    monkeypatch.setattr(module, "hash_file", lambda path, meter: pytest.fail(f"{path} was read"))
    assert find_again(data, here) is None


def test_inaccessible_data_does_not_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read_data("mnist.npz", write(tmp_path, {"mnist.npz": "1"}) / "mnist.npz", tmp_path).data

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    assert find_again(data, tmp_path / "mnist.npz") is None
