"""Folders for temporary files: created, found under a short name, and removed whatever their content."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.supervisor import temporary


def test_a_trainers_folder_is_its_own_and_closed_to_others(tmp_path: Path) -> None:
    place = temporary.place_of(tmp_path / "tmp", "20261121-191204-9f3a01bc", "worker:1")
    assert place == tmp_path / "tmp" / "9f3a01bc-worker-1"
    temporary.make(str(place))
    temporary.make(str(place))
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_folder_is_removed_with_everything_in_it(tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "tmp" / "a", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    temporary.make(str(place))
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "er" / "file").write_text("x")
    (place / "link").symlink_to(elsewhere)
    temporary.remove(str(place))
    temporary.remove(str(place))
    assert not place.exists()
    assert (elsewhere / "kept").exists(), "a link is no folder of ours"


def test_without_a_place_nothing_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch()
    temporary.make("")
    temporary.remove("")
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]


def test_a_folder_that_cannot_be_made_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / "tmp").touch()
    temporary.make(str(tmp_path / "tmp" / "a"))
    temporary.remove(str(tmp_path / "tmp" / "a"))


def test_folders_that_a_crashed_node_left_are_removed_at_the_next_start(tmp_path: Path) -> None:
    temporary.sweep(tmp_path / "tmp")
    for name in ("one", "two"):
        temporary.make(str(tmp_path / "tmp" / name))
        (tmp_path / "tmp" / name / "__autograph_generated_file.py").touch()
    temporary.sweep(tmp_path / "tmp")
    assert list((tmp_path / "tmp").iterdir()) == []
