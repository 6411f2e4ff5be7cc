import errno
import os
import shutil
from pathlib import Path

import pytest

from core.project import copy
from core.project import store as store_module
from core.project.store import ProjectStore
from core.vocabulary.data import Data
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Listing, Manifest
from tests.core.project.making import content, manifest_for, pieces, write

FILES = {"train.py": b"print(1)", "data/a.csv": b"1,2,3", "data/b.csv": b""}
MANIFEST = manifest_for(FILES)


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    return ProjectStore(tmp_path / "home" / "projects")


def put(store: ProjectStore, tmp_path: Path, files: dict[str, bytes]) -> Manifest:
    manifest = manifest_for(files)
    source = write(tmp_path / "sources" / manifest.digest, dict(files))
    receipt = store.receive(manifest)
    for piece in pieces(source, manifest, receipt.wanted):
        receipt.take(piece)
    store.add(receipt)
    return manifest


def test_a_project_is_kept_under_its_digest(tmp_path: Path, store: ProjectStore) -> None:
    assert not store.has(MANIFEST.digest)
    put(store, tmp_path, FILES)
    assert store.has(MANIFEST.digest)
    assert store.manifest(MANIFEST.digest) == MANIFEST
    assert content(tmp_path / "home" / "projects" / MANIFEST.digest) == FILES


def test_a_run_works_on_a_copy_of_its_own(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    work = store.checkout(MANIFEST, tmp_path / "run-1")
    assert work == tmp_path / "run-1" / "work"
    assert content(work) == FILES
    (work / "train.py").write_text("other")
    (work / "data" / "a.csv").unlink()
    assert content(store.checkout(MANIFEST, tmp_path / "run-2")) == FILES


def test_a_kept_project_is_not_wanted_again(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    receipt = store.receive(MANIFEST)
    assert receipt.wanted == ()
    store.add(receipt)
    assert content(store.checkout(MANIFEST, tmp_path / "run")) == FILES


def test_only_the_changed_files_of_a_new_version_are_wanted(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    newer = {**FILES, "train.py": b"print(2)", "copy.csv": FILES["data/a.csv"]}
    manifest = manifest_for(newer)
    receipt = store.receive(manifest)
    assert [manifest.files[want.file].path for want in receipt.wanted] == ["train.py"]
    assert content(store.checkout(put(store, tmp_path, newer), tmp_path / "run")) == newer


def test_versions_share_what_they_have_in_common_and_no_run_can_write_there(
    tmp_path: Path, store: ProjectStore
) -> None:
    put(store, tmp_path, FILES)
    newer = {**FILES, "train.py": b"print(2)"}
    manifest = put(store, tmp_path, newer)
    old, new = (
        tmp_path / "home" / "projects" / each.digest / "data" / "a.csv" for each in (MANIFEST, manifest)
    )
    assert old.samefile(new)
    work = store.checkout(manifest, tmp_path / "run")
    (work / "data" / "a.csv").write_bytes(b"1,2,4")
    (work / "data" / "a.csv").chmod(0o777)
    assert old.read_bytes() == FILES["data/a.csv"] and not old.samefile(work / "data" / "a.csv")
    store.forget(MANIFEST.digest)
    assert content(store.checkout(manifest, tmp_path / "run-2")) == newer


def test_a_project_whose_list_was_not_written_is_not_sent_again(
    tmp_path: Path, store: ProjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full, pytest.raises(TandemError, match="is full"):
        full.setattr(store_module, "write_atomically", fails)
        put(store, tmp_path, FILES)
    assert not store.has(MANIFEST.digest)
    assert [path.name for path in store.unfinished()] == [MANIFEST.digest]
    assert store.came_bytes(MANIFEST.digest) == MANIFEST.total_bytes
    receipt = store.receive(MANIFEST)
    assert receipt.wanted == ()
    store.add(receipt)
    assert content(store.checkout(MANIFEST, tmp_path / "run")) == FILES
    assert store.unfinished() == []


def disk_with(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    class Usage:
        pass

    usage = Usage()
    usage.free = copy.SPARE_BYTES + free  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)


def test_files_linked_to_another_version_need_no_space(
    tmp_path: Path, store: ProjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, tmp_path, FILES)
    disk_with(monkeypatch, len(b"print(2)"))
    newer = {**FILES, "train.py": b"print(2)"}
    put(store, tmp_path, newer)
    with pytest.raises(TandemError) as refused:
        store.receive(manifest_for({**FILES, "train.py": b"print(22)"}))
    assert refused.value.code == "disk-full"


def test_a_copy_where_no_link_can_be_made_does_not_fill_the_disk(
    tmp_path: Path, store: ProjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, tmp_path, FILES)

    def refuses(*paths: object, **_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuses)
    disk_with(monkeypatch, len(FILES["data/a.csv"]) - 1)
    with pytest.raises(TandemError) as refused:
        store.receive(manifest_for({**FILES, "train.py": b"1"}))
    assert refused.value.code == "disk-full"
    assert not list((tmp_path / "home" / "projects" / "incoming").glob("*/0.part"))


def test_damage_shared_by_versions_is_found_and_repaired(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    newer = {**FILES, "train.py": b"print(2)"}
    manifest = put(store, tmp_path, newer)
    (tmp_path / "home" / "projects" / MANIFEST.digest / "data" / "a.csv").write_bytes(b"1,2,4")
    for each, files in ((MANIFEST, FILES), (manifest, newer)):
        with pytest.raises(TandemError, match="damaged"):
            store.checkout(each, tmp_path / "run")
        put(store, tmp_path, files)
        assert content(store.checkout(each, tmp_path / each.digest)) == files


def test_damage_is_found_before_use_and_the_project_is_sent_anew(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    victim = tmp_path / "home" / "projects" / MANIFEST.digest / "train.py"
    victim.write_bytes(b"evil(1) ")
    with pytest.raises(TandemError, match=r"damaged: train\.py") as caught:
        store.checkout(MANIFEST, tmp_path / "run")
    assert caught.value.code == "project-damaged"
    assert not (tmp_path / "run" / "work").exists()
    assert not store.has(MANIFEST.digest)
    put(store, tmp_path, FILES)
    assert content(store.checkout(MANIFEST, tmp_path / "run")) == FILES


def test_a_link_put_into_the_store_is_not_followed(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    (tmp_path / "same").write_bytes(FILES["train.py"])
    stored = tmp_path / "home" / "projects" / MANIFEST.digest / "train.py"
    stored.unlink()
    stored.symlink_to(tmp_path / "same")
    with pytest.raises(TandemError, match="damaged"):
        store.checkout(MANIFEST, tmp_path / "run")


def test_invariant_a_project_named_as_data_is_not_removed(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    listing = Listing(digest=MANIFEST.digest, size=len(MANIFEST.listing()))
    said = Data(name="photos", path="/photos", listing=listing, files=3, total_bytes=13)
    assert store.find_data(said) is None
    assert store.has(MANIFEST.digest)


def test_a_project_that_never_came_is_not_checked_out(tmp_path: Path, store: ProjectStore) -> None:
    with pytest.raises(TandemError, match="damaged"):
        store.checkout(MANIFEST, tmp_path / "run")


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"script":"train.py","files":[]}', b"\xff", None])
def test_a_manifest_with_another_digest_is_rejected(
    tmp_path: Path, store: ProjectStore, damage: bytes | None
) -> None:
    put(store, tmp_path, FILES)
    kept = tmp_path / "home" / "projects" / f"{MANIFEST.digest}.json"
    kept.write_bytes(kept.read_bytes().replace(b"a.csv", b"c.csv") if damage is None else damage)
    assert store.manifest(MANIFEST.digest) is None
    assert not store.has(MANIFEST.digest)
    put(store, tmp_path, FILES)
    assert store.has(MANIFEST.digest)


@pytest.mark.parametrize(
    "path", ["../../evil.py", "/tmp/evil.py", "a/../../evil.py", "C:evil.py", "a\\..\\evil.py"]
)
def test_a_path_that_escapes_is_refused_and_nothing_is_written(
    tmp_path: Path, store: ProjectStore, path: str
) -> None:
    manifest = manifest_for({path: b"x", "train.py": b"y"})
    for attempt in (store.receive, lambda manifest: store.checkout(manifest, tmp_path / "run")):
        with pytest.raises(TandemError, match="refused"):
            attempt(manifest)
    assert list(tmp_path.iterdir()) == []


def test_two_names_for_one_file_are_refused(store: ProjectStore) -> None:
    with pytest.raises(TandemError, match="same name"):
        store.receive(manifest_for({"train.py": b"y", "Train.py": b"x"}))


def test_a_run_folder_that_has_a_copy_already_is_left_alone(tmp_path: Path, store: ProjectStore) -> None:
    put(store, tmp_path, FILES)
    write(tmp_path / "run" / "work", {"mine": "x"})
    with pytest.raises(TandemError, match="cannot be written"):
        store.checkout(MANIFEST, tmp_path / "run")
    assert content(tmp_path / "run") == {"work/mine": b"x"}


def test_a_checkout_counts_as_use(tmp_path: Path, store: ProjectStore) -> None:
    old, new = (put(store, tmp_path, {"train.py": text * 100}) for text in (b"a", b"b"))
    for manifest in (old, new):
        os.utime(tmp_path / "home" / "projects" / f"{manifest.digest}.json", (1000, 1000))
    store.checkout(old, tmp_path / "run")
    assert store.used_s(old.digest) > store.used_s(new.digest) == 1000


def test_forgetting_a_missing_project_is_no_error(store: ProjectStore) -> None:
    store.forget(ProjectId("0" * 64))


def test_an_unwritable_home_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    with pytest.raises(TandemError, match="cannot be written") as caught:
        ProjectStore(tmp_path / "home" / "projects").receive(MANIFEST)
    assert caught.value.code == "storage-failed"


def test_the_longest_allowed_path_is_stored_and_one_too_long_for_this_system_is_reported(
    tmp_path: Path,
) -> None:
    longest = "/".join(["d" * 100] * 10) + "/" + "f" * 14
    files = {"train.py": b"print(1)", longest: b"deep"}
    manifest, source = manifest_for(files), write(tmp_path / "source", dict(files))
    assert len(longest) == 1024

    def keep(home: Path) -> ProjectStore:
        store = ProjectStore(home / "projects")
        receipt = store.receive(manifest)
        for piece in pieces(source, manifest, receipt.wanted):
            receipt.take(piece)
        store.add(receipt)
        return store

    assert content(keep(tmp_path / "home").checkout(manifest, tmp_path / "run")) == files
    deep = tmp_path.joinpath(*["h" * 200] * 15)
    with pytest.raises(TandemError, match="too long for this system") as caught:
        keep(deep)
    assert isinstance(caught.value.__cause__, OSError) and caught.value.__cause__.errno == errno.ENAMETOOLONG
    assert "shorter path" in caught.value.fix and not (deep / "projects" / manifest.digest).exists()


def test_a_run_that_writes_to_one_of_two_names_of_a_file_changes_that_one(
    tmp_path: Path, store: ProjectStore
) -> None:
    """One file on the sender's disk is sent as two."""
    files: dict[str, bytes] = {"train.py": b"1", "a.bin": b"same", "b.bin": b"same"}
    source = write(tmp_path / "source", dict(files))
    (source / "b.bin").unlink()
    os.link(source / "a.bin", source / "b.bin")
    manifest = manifest_for(files)
    receipt = store.receive(manifest)
    for piece in pieces(source, manifest, receipt.wanted):
        receipt.take(piece)
    store.add(receipt)
    work = store.checkout(manifest, tmp_path / "run")
    (work / "a.bin").write_bytes(b"other")
    assert content(work) == {**files, "a.bin": b"other"}
    assert content(store.checkout(manifest, tmp_path / "next")) == files
