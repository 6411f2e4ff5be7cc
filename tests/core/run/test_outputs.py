from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from core.project.files import list_files
from core.project.outputs import find_outputs
from core.run import outputs
from core.run.outputs import FolderSnapshot, is_model, keep_left, move_models, saved_bytes
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import manifest_of
from core.vocabulary.run_folder import LEFT


def paths(snapshot: FolderSnapshot) -> list[str]:
    manifest, _ = snapshot.written()
    return [file.path for file in manifest.files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.py", "data/big.csv", ".venv/lib/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    return tmp_path


def test_new_and_changed_files_are_what_a_script_wrote(folder: Path) -> None:
    before = FolderSnapshot(folder, deep=True)
    (folder / "model.keras").write_text("new")
    (folder / "data" / "cache.npy").write_text("new")
    (folder / "data" / "big.csv").write_text("changed")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "train.pyc").write_text("new")
    (folder / ".venv" / "lib" / "y.py").write_text("new")
    assert paths(before) == ["data/big.csv", "data/cache.npy", "model.keras"]


def test_a_file_rewritten_with_the_same_size_counts(folder: Path) -> None:
    before = FolderSnapshot(folder, deep=True)
    (folder / "train.py").write_text("new")
    os.utime(folder / "train.py", ns=(1, 1))
    assert paths(before) == ["train.py"]


def test_only_the_top_level_of_a_broad_folder_is_compared(folder: Path) -> None:
    before = FolderSnapshot(folder, deep=False)
    (folder / "model.keras").write_text("new")
    (folder / "data" / "cache.npy").write_text("new")
    assert paths(before) == ["model.keras"]


def test_only_the_top_level_of_an_endless_folder_is_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = list_files

    def endless(where: Path, **settings: object) -> object:
        listing = real(where, **settings)  # type: ignore[arg-type]
        if any("/" in file.path for file in listing.files):
            raise TandemError(code="project-too-large", what="Too much.")
        return listing

    monkeypatch.setattr(outputs, "list_files", endless)
    before = FolderSnapshot(folder, deep=True)
    (folder / "model.keras").write_text("new")
    assert not before.deep
    assert paths(before) == ["model.keras"]


def test_outputs_that_do_not_fit_stay_beside_the_script_and_are_named(folder: Path) -> None:
    before = FolderSnapshot(folder, deep=True, limit_bytes=10)
    (folder / "small.txt").write_text("new")
    (folder / "large.bin").write_text("x" * 50)
    manifest, problem = before.written()
    assert [file.path for file in manifest.files] == ["small.txt"]
    assert problem is not None
    assert "large.bin" in problem.what


def test_models_are_moved_and_nothing_is_overwritten(tmp_path: Path) -> None:
    for number in ("trained", "trained-2", "trained-3"):
        kept, place = tmp_path / "kept", tmp_path / "outputs"
        kept.mkdir()
        (kept / "model.keras").write_text(number)
        (kept / "model-2.weights.h5").write_text("weights")
        assert saved_bytes(kept) == len(number) + 7
        assert move_models(kept, place) == (f"{number}/model-2.weights.h5", f"{number}/model.keras")
        assert (place / number / "model.keras").read_text() == number
        assert not kept.exists()


def test_half_a_file_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "kept" / "parts").mkdir(parents=True)
    (tmp_path / "kept" / "parts" / "model.keras").write_text("half")
    assert move_models(tmp_path / "kept", tmp_path / "outputs") == ()
    assert not (tmp_path / "outputs").exists()
    (tmp_path / "kept" / "parts").mkdir(parents=True)
    (tmp_path / "kept" / "model.keras").write_text("whole")
    assert move_models(tmp_path / "kept", tmp_path / "outputs") == ("trained/model.keras",)
    assert not (tmp_path / "kept").exists()


def test_invariant_a_link_that_a_script_left_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "key").write_text("secret")
    (tmp_path / "kept/model.keras").symlink_to(tmp_path / "key")
    assert saved_bytes(tmp_path / "kept") == 0
    assert move_models(tmp_path / "kept", tmp_path / "outputs") == ()
    assert (tmp_path / "key").read_text() == "secret"


def test_without_trained_models_nothing_is_moved(tmp_path: Path) -> None:
    assert move_models(tmp_path / "kept", tmp_path) == ()
    assert saved_bytes(tmp_path / "kept") == 0


def test_a_saved_model_is_known_by_its_path() -> None:
    assert is_model("trained/model.keras")
    assert is_model("trained-2/model-17.weights.h5")
    assert not is_model("model.keras")
    assert not is_model("trained/notes.txt")
    assert not is_model("trained/model.keras/../x")


def test_outputs_that_are_not_brought_back_are_kept_where_they_were_written(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    (work / "deep" / "large.bin").write_bytes(bytes(100))
    (work / "small.bin").write_bytes(bytes(10))
    (work / "link").symlink_to("small.bin")
    found = find_outputs(work, manifest_of("", []), limit_bytes=50)
    told = keep_left(found, work, tmp_path / LEFT, "Ben")
    assert told is not None and told.what.startswith("Not brought back: link (it is a link), and 1 more.")
    assert told.fix.startswith("Ben keeps what was too much, in the run's folder outputs-left, ")
    assert (tmp_path / LEFT / "deep" / "large.bin").read_bytes() == bytes(100)
    assert sorted(path.name for path in work.iterdir()) == ["deep", "link", "small.bin"]
    assert keep_left(find_outputs(work / "deep", manifest_of("", [])), work, tmp_path, "Ben") is None


def test_invariant_nothing_is_moved_through_a_link_that_a_script_left(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.pdf").write_bytes(bytes(100))
    work = tmp_path / "work"
    (work / "logs").mkdir(parents=True)
    (work / "logs" / "thesis.pdf").write_bytes(bytes(100))
    found = find_outputs(work, manifest_of("", []), limit_bytes=50)
    (work / "logs").rename(work / "moved")
    (work / "logs").symlink_to(tmp_path / "own")
    told = keep_left(found, work, tmp_path / LEFT, "Ben")
    assert told is not None and "keeps" not in told.fix
    assert (tmp_path / "own" / "thesis.pdf").exists() and not (tmp_path / LEFT).exists()


def test_invariant_nothing_is_moved_through_a_folder_that_becomes_a_link_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process of the script that survives it could do."""
    work, own = tmp_path / "work", tmp_path / "own"
    for folder, words in ((own, b"mine"), (work / "logs", b"the script's")):
        folder.mkdir(parents=True)
        (folder / "thesis.pdf").write_bytes(words)
    found = find_outputs(work, manifest_of("", []), limit_bytes=5)
    rename, swapped = os.rename, list[bool]()

    def swap_and_rename(*places: Any, **folders: Any) -> None:
        if not swapped:
            swapped.append(True)
            rename(work / "logs", work / "moved")
            (work / "logs").symlink_to(own)
        rename(*places, **folders)

    monkeypatch.setattr(os, "rename", swap_and_rename)
    keep_left(found, work, tmp_path / LEFT, "Ben")
    assert swapped and (own / "thesis.pdf").read_bytes() == b"mine"
    assert (tmp_path / LEFT / "logs" / "thesis.pdf").read_bytes() == b"the script's"


def test_only_what_was_kept_is_named_as_kept(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "logs").mkdir(parents=True)
    for name in ("logs/a.bin", "b.bin"):
        (work / name).write_bytes(bytes(100))
    found = find_outputs(work, manifest_of("", []), limit_bytes=50)
    (tmp_path / LEFT).mkdir()
    (tmp_path / LEFT / "logs").write_text("a file stands in the way")
    told = keep_left(found, work, tmp_path / LEFT, "Ben")
    assert told is not None
    assert told.fix.startswith("Ben keeps b.bin, in the run's folder outputs-left, as long as its settings")
    assert (work / "logs" / "a.bin").exists() and (tmp_path / LEFT / "b.bin").exists()
