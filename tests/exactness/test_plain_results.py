"""Stored results of the plain process are read back completely, or computed again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.exactness.plain_results import PlainResults, version_key


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    path = tmp_path / "sgd.npz"
    np.savez(path, weight=np.arange(6.0).reshape(2, 3))
    return path


def test_what_was_put_comes_back(tmp_path: Path, npz: Path) -> None:
    PlainResults(tmp_path / "kept", "key").put("sgd", npz)
    found = PlainResults(tmp_path / "kept", "key").get("sgd")
    assert found is not None and list(found) == ["weight"]
    assert np.array_equal(found["weight"], np.arange(6.0).reshape(2, 3))


def test_nothing_is_there_before(tmp_path: Path) -> None:
    assert PlainResults(tmp_path / "kept", "key").get("sgd") is None


def test_another_key_finds_nothing_and_clears_the_old_ones(tmp_path: Path, npz: Path) -> None:
    PlainResults(tmp_path / "kept", "key").put("sgd", npz)
    assert PlainResults(tmp_path / "kept", "other").get("sgd") is None
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize("place", [0, 40, 200, -1])
def test_a_flipped_bit_anywhere_is_found(tmp_path: Path, npz: Path, place: int) -> None:
    results = PlainResults(tmp_path / "kept", "key")
    results.put("sgd", npz)
    kept = tmp_path / "kept" / "key" / "sgd"
    data = bytearray(kept.read_bytes())
    data[place] ^= 1
    kept.write_bytes(data)
    assert results.get("sgd") is None


def test_a_file_that_was_cut_short_is_found(tmp_path: Path, npz: Path) -> None:
    results = PlainResults(tmp_path / "kept", "key")
    results.put("sgd", npz)
    kept = tmp_path / "kept" / "key" / "sgd"
    for length in (0, 10, 32, 100):
        kept.write_bytes(kept.read_bytes()[:length])
        assert results.get("sgd") is None


def test_without_a_folder_nothing_is_kept(npz: Path) -> None:
    results = PlainResults(None, "key")
    results.put("sgd", npz)
    assert results.get("sgd") is None


def test_the_key_follows_scenarios_releases_and_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("scenarios/sgd.py", "scripts/gan.py", "keras_names.py", "member.py", "processes.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    keys = [version_key(tmp_path), version_key(tmp_path)]
    assert keys[0] == keys[1]
    for name in ("scenarios/sgd.py", "scripts/gan.py", "member.py"):
        (tmp_path / name).write_text("after")
        keys.append(version_key(tmp_path))
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    keys.append(version_key(tmp_path))
    monkeypatch.setattr("tests.exactness.plain_results.version", lambda name: "another")
    keys.append(version_key(tmp_path))
    assert len(set(keys[1:])) == 6
