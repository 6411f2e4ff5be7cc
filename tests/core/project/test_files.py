import hashlib
import os
import socket
from pathlib import Path

import pytest

from core.project.data import scan_data
from core.project.files import ReadMeter, hash_file, list_files
from core.project.hash_cache import HashCache
from core.project.scan import scan_project
from core.runtime.regular_file import READ_BYTES, NotRegular
from core.vocabulary.errors import TandemError
from tests.core.project.making import write


def paths(folder: Path) -> list[str]:
    return [file.path for file in list_files(folder).files]


def why(folder: Path) -> dict[str, str]:
    return {entry.path: entry.why for entry in list_files(folder).skipped}


def test_files_are_listed_by_path_with_their_sizes(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.txt").write_bytes(b"123")
    (tmp_path / "a.txt").write_bytes(b"1")
    (tmp_path / "b.txt").touch()
    listing = list_files(tmp_path)
    assert [(file.path, file.size) for file in listing.files] == [("a.txt", 1), ("b.txt", 0), ("b/c.txt", 3)]
    assert listing.skipped == ()


def test_links_are_reported_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside, target_is_directory=True)
    (inside / "loop").symlink_to(inside, target_is_directory=True)
    (inside / "dangling").symlink_to("nowhere")
    assert paths(inside) == []
    assert why(inside) == dict.fromkeys(("file", "folder", "loop", "dangling"), "it is a link")


def test_pipes_and_sockets_are_reported_and_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert why(tmp_path) == dict.fromkeys(("pipe", "socket"), "it is neither a file nor a folder")
    with pytest.raises(NotRegular):
        hash_file(tmp_path / "pipe")


def test_a_device_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotRegular):
        hash_file(Path("/dev/null"))
    try:
        os.mknod(tmp_path / "device", 0o020600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")
    assert why(tmp_path) == {"device": "it is neither a file nor a folder"}


def test_names_that_may_not_travel_are_reported_with_their_folders(tmp_path: Path) -> None:
    (tmp_path / "a:b.csv").touch()
    (tmp_path / "bad\\folder").mkdir()
    (tmp_path / "bad\\folder" / "x").touch()
    try:
        Path(os.fsdecode(bytes(tmp_path) + b"/\xff.txt")).touch()
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    reasons = why(tmp_path)
    assert paths(tmp_path) == []
    assert reasons["\\udcff.txt"] == "its name is not valid Unicode"
    assert "backslash" in reasons["bad\\folder"]
    assert len(reasons) == 3


def test_leave_out_prunes_folders_with_or_without_a_reason(tmp_path: Path) -> None:
    for name in ("quiet", "loud", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    reasons = {"quiet": "", "loud": "because"}
    entered: list[str] = []
    listing = list_files(tmp_path, enter=entered.append, leave_out=lambda path, _: reasons.get(path))
    assert [file.path for file in listing.files] == ["kept/x"]
    assert [(entry.path, entry.why) for entry in listing.skipped] == [("loud", "because")]
    assert entered == ["", "kept"]


def test_an_endless_folder_is_refused(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).touch()
    with pytest.raises(TandemError, match="more than 3 files"):
        list_files(tmp_path, most_entries=3)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="cannot be read") as caught:
        list_files(tmp_path / "nowhere")
    assert caught.value.code == "folder-unreadable"


def test_a_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    data = os.urandom(READ_BYTES + 5)
    (tmp_path / "x").write_bytes(data)
    assert hash_file(tmp_path / "x") == (len(data), hashlib.sha256(data).hexdigest())


def test_progress_is_reported_at_intervals() -> None:
    now_s, told = [0.0], list[tuple[int, int]]()
    meter = ReadMeter(lambda done, total: told.append((done, total)), clock=lambda: now_s[0], every_s=1.0)
    meter.expect(300)
    for now_s[0] in (0.2, 0.9, 1.1, 1.9, 2.2):
        meter.add(50)
    assert told == [(150, 300), (250, 300)]


def test_progress_never_exceeds_the_total_when_a_file_grows() -> None:
    told: list[tuple[int, int]] = []
    meter = ReadMeter(lambda done, total: told.append((done, total)), every_s=0)
    meter.expect(10)
    meter.add(30)
    assert told == [(30, 30)]


def test_a_project_and_its_data_are_metered_together(tmp_path: Path) -> None:
    write(tmp_path / "project", {"train.py": b"import keras\n", "photos/a.bin": b"a" * 100})
    write(tmp_path / "data", {"b.bin": b"b" * 50, "c.bin": b"c" * 7})
    told: list[tuple[int, int]] = []
    meter = ReadMeter(lambda done, total: told.append((done, total)), every_s=0)
    scan_project(tmp_path / "project" / "train.py", home=tmp_path, meter=meter)
    scan_data(tmp_path / "data", "data", meter=meter)
    assert told == [(100, 113), (113, 113), (163, 170), (170, 170)]


def test_a_file_whose_hash_is_known_counts_as_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"b.bin": b"b" * 50})
    cache = HashCache(folder, tmp_path / "hashes", settled_ns=-(10**12))
    told: list[tuple[int, int]] = []
    cache.hash_file("b.bin")
    cache.save()
    meter = ReadMeter(lambda done, total: told.append((done, total)), every_s=0)
    HashCache(folder, tmp_path / "hashes", settled_ns=-(10**12)).hash_file("b.bin", meter)
    assert told == [(50, 50)]
