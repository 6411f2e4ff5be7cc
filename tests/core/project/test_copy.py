import errno
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from core.project.copy import (
    Changed,
    WritingTurn,
    copy_file,
    copy_project,
    is_too_long,
    link_file,
    storing,
)
from core.project.store import ProjectStore
from core.runtime.regular_file import open_regular
from core.vocabulary.errors import TandemError
from tests.core.project.making import content, manifest_for, write

LIMIT_S = 60
FILES = {"train.py": b"print(1)", "data/a.csv": b"1,2,3"}
MANIFEST = manifest_for(FILES)


def test_only_what_the_manifest_names_is_copied(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {**FILES, "extra.txt": b"x"})
    copy_project(MANIFEST, source, tmp_path / "copy")
    assert content(tmp_path / "copy") == FILES


@pytest.mark.parametrize("data", [b"1,2,4", b"1,2", b"1,2,3,4"], ids=["other", "shorter", "longer"])
def test_other_content_leaves_no_copy_behind(tmp_path: Path, data: bytes) -> None:
    source = write(tmp_path / "source", {**FILES, "data/a.csv": data})
    with pytest.raises(Changed) as caught:
        copy_project(MANIFEST, source, tmp_path / "copy")
    assert caught.value.path == "data/a.csv"
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("size", [0, 5, 3_000_000])
def test_a_copy_is_one_whatever_the_file_system_shares(tmp_path: Path, size: int) -> None:
    files = {"train.py": b"#" * size}
    source = write(tmp_path / "source", dict(files))
    copy_project(manifest_for(files), source, tmp_path / "copy")
    with (tmp_path / "copy" / "train.py").open("r+b") as copied:
        copied.write(b"other")
    assert content(source) == files


def test_a_file_is_copied_where_the_file_system_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(os, "link", refused)
    source = write(tmp_path / "source", dict(FILES)) / "train.py"
    file = next(each for each in MANIFEST.files if each.path == "train.py")
    link_file(file, source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == FILES["train.py"] and not source.samefile(tmp_path / "copy")


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.ENAMETOOLONG, "path-too-long"),
        (errno.EACCES, "storage-failed"),
    ],
)
def test_disk_errors_become_sentences(tmp_path: Path, number: int, code: str) -> None:
    with pytest.raises(TandemError) as caught, storing(tmp_path):
        raise OSError(number, "refused")
    assert caught.value.code == code
    assert caught.value.fix and ("tandem clear" in caught.value.fix) == (code == "disk-full")


@pytest.mark.skipif(os.name == "nt", reason="Windows may allow paths of any length")
def test_a_path_that_is_too_long_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    limit, home = os.pathconf(tmp_path, "PC_PATH_MAX"), tmp_path
    while len(str(home)) < limit - 600:
        home /= "h" * 100
    home.mkdir(parents=True)
    long = manifest_for({"train.py": b"", "/".join(["n" * 200] * 4): b"1"})
    for refused in (
        lambda: ProjectStore(home).check_room(long, copies=0),
        lambda: ProjectStore(home).receive(long),
    ):
        with pytest.raises(TandemError) as caught:
            refused()
        assert caught.value.code == "path-too-long"
    ProjectStore(tmp_path).check_room(long, copies=0)


def test_windows_refuses_a_long_path_as_one_that_cannot_be_found() -> None:
    long = "C:\\" + "n" * 260
    missing = OSError(errno.ENOENT, "not found", "short", None, "short too")
    assert not is_too_long(missing, on_windows=True)
    for paths in ((long, None, None), ("short", None, long)):
        refused = OSError(errno.ENOENT, "not found", *paths)
        assert is_too_long(refused, on_windows=True) and not is_too_long(refused, on_windows=False)


def test_a_target_that_cannot_be_made_is_not_reported_as_a_changed_source(tmp_path: Path) -> None:
    source = write(tmp_path / "source", dict(FILES)) / "train.py"
    file = next(each for each in MANIFEST.files if each.path == "train.py")
    for copy in (copy_file, lambda file, _, target: link_file(file, source, target)):
        with pytest.raises((FileNotFoundError, TandemError)):
            copy(file, partial(open_regular, source), tmp_path / "missing" / "train.py")


def test_only_the_newest_writer_writes(tmp_path: Path) -> None:
    first, elsewhere = WritingTurn(tmp_path), WritingTurn(tmp_path / "other")
    with first.writing():
        pass
    second = WritingTurn(tmp_path)
    with pytest.raises(TandemError, match="Another run is now receiving the same files"), first.writing():
        pass
    for turn in (second, elsewhere):
        with turn.writing():
            pass


def test_the_next_writer_waits_for_a_write_under_way(tmp_path: Path) -> None:
    first, began = WritingTurn(tmp_path), threading.Event()

    def begin() -> None:
        WritingTurn(tmp_path)
        began.set()

    with first.writing():
        thread = threading.Thread(target=begin, daemon=True)
        thread.start()
        assert not began.wait(0.1)
    assert began.wait(LIMIT_S)
    thread.join(LIMIT_S)
