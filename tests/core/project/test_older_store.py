"""A store as the first Tandem wrote it, byte for byte, and one that no version wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.project.receipt import FilePiece, Wanted
from core.project.store import ProjectStore
from core.run.leftovers import DAY_S, GB, Leftovers
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.manifest import Manifest, ProjectFile
from tests.core.project.making import content

KEPT = ProjectId("4e5e4aeebf2b81baba86a01d5c7f53e5cbc60ffc1c9ac854b6c4c08563942e09")
KEPT_LIST = (
    b'{"script":"train.py","files":[{"path":"data.csv","size":8,"sha256":'
    b'"96bbd5de61f36b0e10c5771d180998d066192e8986aa34a8cb7c453f62959274"},{"path":"train.py","size":9,"sha256":'
    b'"cc42155088fca5730758db72b2a5bca33112a941dfaa2d43098ec422ce4ea213"}]}'
)
IN_PART = ProjectId("ce919f51a6be7a5525016171cd9b64ebb25b813bae37643ccf570b19125a6941")
"""The same with another script, of which 4 bytes had come."""
IN_PART_SCRIPT = ProjectFile(
    path="train.py", size=9, sha256="0111afd387e1ad576083c5039aa542faa2ed4a53d3e128bd03de990f9ea4255f"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    (folder / KEPT).mkdir(parents=True, mode=0o700)
    (folder / KEPT / "data.csv").write_bytes(b"1,2\n3,4\n")
    (folder / KEPT / "train.py").write_bytes(b"print(1)\n")
    (folder / f"{KEPT}.json").write_bytes(KEPT_LIST)
    parts = folder / "incoming" / IN_PART
    parts.mkdir(parents=True, mode=0o700)
    (parts / "1.part").write_bytes(b"prin")
    return folder


def test_a_kept_project_is_read_checked_out_and_not_sent_again(folder: Path, tmp_path: Path) -> None:
    store = ProjectStore(folder)
    manifest = store.manifest(KEPT)
    assert store.has(KEPT) and manifest is not None and manifest.digest == KEPT
    assert store.receive(manifest).wanted == ()
    work = store.checkout(manifest, tmp_path / "run")
    assert content(work) == {"data.csv": b"1,2\n3,4\n", "train.py": b"print(1)\n"}


def test_an_unfinished_transfer_continues_where_it_stopped(folder: Path) -> None:
    store = ProjectStore(folder)
    kept = store.manifest(KEPT)
    assert kept is not None
    manifest = Manifest(script="train.py", files=(kept.files[0], IN_PART_SCRIPT))
    assert manifest.digest == IN_PART
    receipt = store.receive(manifest)
    assert receipt.wanted == (Wanted(file=1, offset=4),), "the other file is here, in another version"
    receipt.take(FilePiece(file=1, offset=4, data=b"t(2)\n"))
    store.add(receipt)
    assert content(folder / IN_PART) == {"data.csv": b"1,2\n3,4\n", "train.py": b"print(2)\n"}


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"format":"tandem-project-2","files":[]}',
        KEPT_LIST.replace(b"data.csv", b"../x"),
    ],
    ids=["nothing", "no text", "another shape", "a later format", "another list"],
)
def test_an_unreadable_list_counts_as_missing_and_is_removed_with_its_files(
    folder: Path, tmp_path: Path, written: bytes
) -> None:
    (folder / f"{KEPT}.json").write_bytes(written)
    (folder / "blocks").mkdir()
    (folder / "blocks" / "0001").write_bytes(b"of a layout that this version does not know")
    store = ProjectStore(folder)
    (tmp_path / "runs").mkdir()
    leftovers = Leftovers(store, tmp_path / "runs", DeviceId("b" * 64))
    assert not store.has(KEPT) and store.manifest(KEPT) is None
    kept_bytes = 17
    assert leftovers.measure()[0] == kept_bytes + 4
    os.utime(folder / f"{KEPT}.json", (0, 0))
    assert leftovers.trim(30 * DAY_S, GB) == kept_bytes
    assert not (folder / KEPT).exists() and (folder / "incoming" / IN_PART).exists()
