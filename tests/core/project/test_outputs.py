import os
from pathlib import Path

import pytest

from core.project import outputs as module
from core.project.outputs import collect_outputs, find_outputs, receive_outputs
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import ProjectFile, manifest_of
from tests.core.project.making import content, manifest_for, pieces, write

BEFORE = {"train.py": b"print(1)", "data/a.csv": b"1,2,3", "log.txt": b"old"}
MANIFEST = manifest_for(BEFORE)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return write(tmp_path / "work", dict(BEFORE))


def paths(work: Path) -> list[str]:
    return [file.path for file in find_outputs(work, MANIFEST).manifest.files]


def test_a_script_that_wrote_nothing_has_no_outputs(work: Path) -> None:
    os.utime(work / "train.py", (0, 0))
    assert paths(work) == []


def test_new_and_changed_files_are_outputs_whatever_git_ignores(work: Path) -> None:
    write(work, {"model.keras": b"m", "out/plot.png": b"p", "log.txt": b"new", ".gitignore": b"*.keras\n"})
    write(work, {"data/a.csv": b"1,2,4", "__pycache__/model.cpython-311.pyc": b"x"})
    (work / "train.py").unlink()
    assert paths(work) == [".gitignore", "data/a.csv", "log.txt", "model.keras", "out/plot.png"]


def test_links_pipes_and_odd_names_stay_behind(work: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret.txt": b"secret"})
    (work / "latest").symlink_to(tmp_path / "secret.txt")
    (work / "home").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(work / "pipe")
    write(work, {"epoch:1.h5": b"x", "LOG.TXT": b"other", "model.h5": b"m"})
    found = find_outputs(work, MANIFEST)
    chosen = [file.path for file in found.manifest.files]
    assert "model.h5" in chosen
    assert {"latest", "home", "pipe", "epoch:1.h5"} <= {entry.path for entry in found.skipped}
    assert not {"latest", "home/secret.txt", "pipe", "epoch:1.h5"} & set(chosen)


def test_only_one_of_two_colliding_names_comes_back(work: Path) -> None:
    write(work, {"Model.h5": b"1", "model.h5": b"22"})
    if len(list(work.glob("?odel.h5"))) < 2:
        pytest.skip("this file system folds case itself")
    found = find_outputs(work, MANIFEST)
    assert [file.path for file in found.manifest.files] == ["Model.h5"]
    assert [(entry.path, entry.why) for entry in found.skipped] == [
        ("model.h5", "some systems take it for Model.h5")
    ]


def test_large_files_stay_behind_and_small_ones_are_sent(work: Path) -> None:
    write(work, {"huge.bin": b"x" * 100, "metrics.csv": b"x" * 10, "model.h5": b"x" * 50})
    found = find_outputs(work, MANIFEST, limit_bytes=70)
    assert [file.path for file in found.manifest.files] == ["metrics.csv", "model.h5"]
    assert [entry.path for entry in found.skipped] == list(found.left) == ["huge.bin"]
    assert "does not fit" in found.skipped[0].why


def test_terabytes_of_zeros_in_a_files_place_are_not_read(work: Path) -> None:
    os.truncate(work / "log.txt", 8 << 40)
    assert [entry.path for entry in find_outputs(work, MANIFEST).skipped] == ["log.txt"]


def test_a_model_comes_before_small_files(work: Path) -> None:
    write(work, {"a.csv": b"x" * 30, "model.h5": b"x" * 50, "z.csv": b"x" * 20})
    found = find_outputs(work, MANIFEST, first=["model.h5"], limit_bytes=70)
    assert {file.path for file in found.manifest.files} == {"model.h5", "z.csv"}
    assert [entry.path for entry in found.skipped] == ["a.csv"]


def test_the_number_of_outputs_is_limited(work: Path) -> None:
    write(work, {f"out/{number}": b"x" for number in range(4)})
    found = find_outputs(work, MANIFEST, most_files=2)
    assert len(found.manifest.files) == len(found.skipped) == 2


def test_the_list_of_outputs_stays_short_enough_for_the_starter(work: Path, tmp_path: Path) -> None:
    deep = "/".join("d" * 200 for _ in range(3))
    write(work, {f"{deep}/{number:04}": b"" for number in range(1400)})
    found = find_outputs(work, MANIFEST)
    assert found.skipped and "no more than" in found.skipped[0].why
    receive_outputs(found.manifest, tmp_path / "run")


def test_outputs_travel_back_into_the_runs_folder(work: Path, tmp_path: Path) -> None:
    write(work, {"model.keras": b"m" * 600_000, "out/log.csv": b"1"})
    manifest = find_outputs(work, MANIFEST).manifest
    receipt = receive_outputs(manifest, tmp_path / "run")
    for piece in pieces(work, manifest, receipt.wanted):
        receipt.take(piece)
    place = receipt.finish()
    assert place == tmp_path / "run" / "outputs"
    assert content(place) == {"model.keras": b"m" * 600_000, "out/log.csv": b"1"}
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["outputs"]


def test_the_starters_own_outputs_are_copied_and_nothing_is_overwritten(work: Path, tmp_path: Path) -> None:
    write(work, {"model.keras": b"m"})
    manifest = find_outputs(work, MANIFEST).manifest
    assert collect_outputs(manifest, work, tmp_path / "run") == tmp_path / "run" / "outputs"
    assert collect_outputs(manifest, work, tmp_path / "run") == tmp_path / "run" / "outputs-2"
    assert content(tmp_path / "run" / "outputs") == {"model.keras": b"m"}


def test_outputs_that_change_meanwhile_are_reported(work: Path, tmp_path: Path) -> None:
    write(work, {"model.keras": b"m"})
    manifest = find_outputs(work, MANIFEST).manifest
    write(work, {"model.keras": b"n"})
    with pytest.raises(TandemError, match=r"model\.keras changed") as caught:
        collect_outputs(manifest, work, tmp_path / "run")
    assert str(work) in caught.value.fix


@pytest.mark.parametrize("path", ["../up.txt", "/etc/cron.d/x", "a\\b", "NUL"])
def test_a_chief_cannot_write_outside_the_runs_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(TandemError, match="refused"):
        receive_outputs(manifest_for({path: b"x"}, script=""), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_chief_cannot_fill_the_disk(tmp_path: Path) -> None:
    manifest = manifest_for({"a": b"x"}, script="")
    huge = ProjectFile(path="a", size=module.LIMIT_BYTES + 1, sha256=manifest.files[0].sha256)
    with pytest.raises(TandemError, match="the limit is 500 MB"):
        receive_outputs(manifest_of("", [huge]), tmp_path / "run")
