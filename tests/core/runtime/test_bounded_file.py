from __future__ import annotations

from pathlib import Path

import pytest

from core.runtime.bounded_file import BoundedFile


def test_everything_is_kept_up_to_the_bound_and_the_part_before_beside_it(tmp_path: Path) -> None:
    log = BoundedFile(tmp_path / "deep/er/log", most_bytes=10)
    for piece in (b"12345", b"67890", b"abc", b"def"):
        log.write(piece)
    log.close()
    assert (tmp_path / "deep/er/log").read_bytes() == b"abcdef"
    assert (tmp_path / "deep/er/log.1").read_bytes() == b"1234567890"
    assert log.trouble() == ""


def test_existing_content_counts(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"12345678")
    log = BoundedFile(tmp_path / "log", most_bytes=10)
    log.write(b"abc")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"abc"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_reported_once_and_never_raised() -> None:
    log = BoundedFile(Path("/dev/full"))
    log.write(b"one")
    log.write(b"two")
    words = log.trouble()
    assert "No space left on device" in words and "Free some disk space" in words
    log.write(b"three")
    log.close()
    assert log.trouble() == ""


def test_what_fits_exactly_and_what_is_larger_than_all_is_written_whole(tmp_path: Path) -> None:
    log = BoundedFile(tmp_path / "log", most_bytes=4)
    log.write(b"1234")
    log.write(b"")
    assert not (tmp_path / "log.1").exists()
    log.write(b"567890")
    assert (tmp_path / "log").read_bytes() == b"567890"
    assert (tmp_path / "log.1").read_bytes() == b"1234"
    log.close()
    log.close()


def test_a_closed_log_goes_on_where_it_was(tmp_path: Path) -> None:
    log = BoundedFile(tmp_path / "log", most_bytes=100)
    log.write(b"one ")
    log.close()
    log.write(b"two")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"one two"


def test_a_folder_that_cannot_be_made_is_reported_and_never_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    log = BoundedFile(tmp_path / "file" / "log")
    log.write(b"one")
    log.close()
    assert log.trouble().startswith("The log log cannot be written (")
    assert log.trouble() == ""
