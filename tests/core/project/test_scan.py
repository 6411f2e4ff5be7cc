import hashlib
import os
import tempfile
from pathlib import Path

import pytest

from core.project import scan as module
from core.project.scan import is_broad, scan_project
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import check_project
from tests.core.project.making import write


def paths(script: Path) -> list[str]:
    return [file.path for file in scan_project(script).manifest.files]


def test_a_folder_becomes_a_manifest(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "print(1)", "data/x.csv": "1,2", "lib/model.py": ""})
    project = scan_project(tmp_path / "train.py")
    assert project.manifest.script == "train.py"
    assert [(file.path, file.size) for file in project.manifest.files] == [
        ("data/x.csv", 3),
        ("lib/model.py", 0),
        ("train.py", 8),
    ]
    assert project.manifest.files[0].sha256 == hashlib.sha256(b"1,2").hexdigest()
    assert project.whole_folder
    assert project.folder == str(tmp_path.resolve())
    check_project(project.manifest)


def test_files_that_are_not_sent_are_reported(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x", "big/a.bin": "x", "old.log": "x", ".env": "KEY=1", "venv/b": "x"})
    write(tmp_path, {".gitignore": "*.log\nbig/\n", "__pycache__/x.pyc": "x"})
    (tmp_path / "data").symlink_to("/")
    os.mkfifo(tmp_path / "pipe")
    project = scan_project(tmp_path / "train.py")
    assert [file.path for file in project.manifest.files] == [".gitignore", "train.py"]
    assert set(project.ignored) == {"big/", "old.log"}
    assert {entry.path for entry in project.skipped} == {".env", "data", "pipe"}


def test_the_script_travels_even_if_a_rule_leaves_it_out(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x", ".gitignore": "*.py\n"})
    assert "train.py" in paths(tmp_path / "train.py")


def test_a_linked_script_is_read_at_its_real_path(tmp_path: Path) -> None:
    write(tmp_path, {"real/train.py": "x", "real/data.csv": "1", "other/x.txt": "1"})
    (tmp_path / "other" / "run.py").symlink_to("../real/train.py")
    assert paths(tmp_path / "other" / "run.py") == ["data.csv", "train.py"]


def test_the_digest_follows_the_bytes(tmp_path: Path) -> None:
    script = write(tmp_path, {"train.py": "x", "a.csv": "1"}) / "train.py"
    before = scan_project(script).manifest.digest
    assert scan_project(script).manifest.digest == before
    write(tmp_path, {"a.csv": "2"})
    assert scan_project(script).manifest.digest != before


def test_over_the_limit_the_largest_folders_are_named_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "hash_file", lambda path, meter: pytest.fail("nothing is read of what is too large")
    )
    write(tmp_path, {"train.py": "x", "small/a": "x", "data/a": "", "data/b": "", "model.h5": ""})
    with pytest.raises(TandemError) as caught:
        scan_project(tmp_path / "train.py", most_files=4)
    assert caught.value.code == "project-too-large"
    assert "data/ (2 files), model.h5 (1 files)" in caught.value.what
    assert "/data/ and /model.h5" in caught.value.fix
    assert ".tandemignore" in caught.value.fix
    write(tmp_path, {".tandemignore": "/data/\n/model.h5\n"})
    monkeypatch.undo()
    assert paths(tmp_path / "train.py") == [".tandemignore", "small/a", "train.py"]


def test_over_the_limit_nobody_is_told_to_leave_the_script_out(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x", "data.bin": ""})
    with pytest.raises(TandemError, match=r"write lines such as /data\.bin into") as caught:
        scan_project(tmp_path / "train.py", most_files=1)
    assert "train.py" not in str(caught.value)


def test_a_project_of_gigabytes_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hash_file", lambda path, meter: (path.stat().st_size, "a" * 64))
    write(tmp_path, {"train.py": "x", "data.bin": ""})
    os.truncate(tmp_path / "data.bin", 20_000_000_000)
    assert scan_project(tmp_path / "train.py").manifest.total_bytes == 20_000_000_001


def test_too_many_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x", "images/1": "", "images/2": "", "images/3": ""})
    with pytest.raises(TandemError, match=r"4 files.*images/ \(3 files\)"):
        scan_project(tmp_path / "train.py", most_files=3)


def test_names_that_collide_elsewhere_are_an_error_here(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x", "Data.csv": "1", "data.csv": "2"})
    if len(list(tmp_path.iterdir())) < 3:
        pytest.skip("this file system folds case itself")
    with pytest.raises(TandemError, match=r"Data\.csv and data\.csv") as caught:
        scan_project(tmp_path / "train.py")
    assert caught.value.code == "project-names-collide"


def test_a_script_whose_name_may_not_travel_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"my:train.py": "x"})
    with pytest.raises(TandemError, match="cannot be sent"):
        scan_project(tmp_path / "my:train.py")


@pytest.mark.parametrize("inside", ["", "Desktop", "Documents", "Downloads", "Schreibtisch"])
def test_only_the_script_and_its_modules_are_sent_from_a_broad_folder(tmp_path: Path, inside: str) -> None:
    write(tmp_path, {".config/user-dirs.dirs": '# names\nXDG_DESKTOP_DIR="$HOME/Schreibtisch"\n'})
    folder = write(
        tmp_path / inside,
        {
            "train.py": "import keras, model\nfrom nets import cnn\nfrom . import nothing",
            "model.py": "import layers_of_mine",
            "layers_of_mine.py": "",
            "nets/__init__.py": "",
            "nets/cnn.py": "from .blocks import Block",
            "nets/blocks.py": "",
            "nets/unused.py": "",
            "private.txt": "mine",
            "unrelated.py": "",
        },
    )
    project = scan_project(folder / "train.py", home=tmp_path)
    assert not project.whole_folder
    assert [file.path for file in project.manifest.files] == [
        "layers_of_mine.py",
        "model.py",
        "nets/__init__.py",
        "nets/blocks.py",
        "nets/cnn.py",
        "train.py",
    ]


def test_a_folder_of_its_own_in_a_broad_one_travels_as_a_whole(tmp_path: Path) -> None:
    folder = write(tmp_path / "Desktop" / "digits", {"train.py": "x", "data.csv": "1"})
    assert scan_project(folder / "train.py", home=tmp_path).whole_folder


def test_which_folders_are_broad(tmp_path: Path) -> None:
    home = tmp_path / "home" / "ada"
    for broad in (Path("/"), home.parent, home, home / "Downloads", Path(tempfile.gettempdir()).resolve()):
        assert is_broad(broad, home)
    assert not is_broad(home / "Downloads" / "digits", home)
    assert not is_broad(home / "work", home)


def test_modules_behind_links_do_not_travel_from_a_broad_folder(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/secret.py": "", "home/train.py": "import secret"})
    (tmp_path / "home" / "secret.py").symlink_to(tmp_path / "elsewhere" / "secret.py")
    project = scan_project(tmp_path / "home" / "train.py", home=tmp_path / "home")
    assert [file.path for file in project.manifest.files] == ["train.py"]
