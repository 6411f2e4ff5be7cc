"""What is kept of another laptop is told, and removed without a trace, but for the record of its runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project.send import pieces
from core.project.store import ProjectStore
from core.run.keeping.shelf import RECORD, Shelf
from core.vocabulary import run_folder, wire
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import Plan
from tests.core.project.making import manifest_for, write
from tests.core.samples import sample

ANNA, BEN, CLEO = (DeviceId(letter * 64) for letter in "abc")


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    return ProjectStore(tmp_path / "projects")


@pytest.fixture
def shelf(tmp_path: Path, store: ProjectStore) -> Shelf:
    (tmp_path / "runs").mkdir()
    return Shelf(store, tmp_path / "runs", BEN)


def sent(store: ProjectStore, tmp_path: Path, words: str) -> Manifest:
    """A project as it lies in the store once it has come."""
    files = {"train.py": words.encode()}
    manifest = manifest_for(files)
    source = write(tmp_path / "sources" / manifest.digest, dict(files))
    receipt = store.receive(manifest)
    for piece in pieces(source, manifest, receipt.wanted):
        receipt.take(piece)
    store.keep(receipt)
    return manifest


def ran(tmp_path: Path, run: str, starter: DeviceId, project: ProjectId) -> Path:
    """The folder of a run that is over, with everything that a run may leave."""
    folder = tmp_path / "runs" / run
    plan = replace(sample(Plan), run=RunId(run), starter=starter, project=project, script="train.py")
    for name in RECORD:
        if name == run_folder.TENSORBOARD:
            (folder / name).mkdir(parents=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"record")
    (folder / run_folder.PLAN).write_bytes(wire.to_json(plan))
    for name in (run_folder.LOGS, run_folder.CHECKPOINTS, run_folder.OUTPUTS, run_folder.TASKS, "work"):
        (folder / name / "deep").mkdir(parents=True)
        (folder / name / "deep" / "file").write_bytes(bytes(100))
    return folder


def test_each_laptop_is_told_of_its_own(tmp_path: Path, store: ProjectStore, shelf: Shelf) -> None:
    annas, cleos = sent(store, tmp_path, "anna = 1"), sent(store, tmp_path, "cleo = 1")
    ran(tmp_path, "20261121-191204-9f3a01bc", ANNA, annas.digest)
    ran(tmp_path, "20261122-191204-9f3a01bc", ANNA, annas.digest)
    ran(tmp_path, "20261123-191204-9f3a01bc", CLEO, cleos.digest)
    ran(tmp_path, "20261124-191204-9f3a01bc", BEN, annas.digest)
    kept = shelf.of(ANNA)
    (project,) = kept.projects
    assert (project.project, project.script, project.files) == (annas.digest, "train.py", 1)
    assert project.bytes == annas.total_bytes and project.used_s > 0 and not project.of_others
    assert [run.run[:8] for run in kept.runs] == ["20261122", "20261121"]
    assert {(run.bytes, run.project) for run in kept.runs} == {(500, annas.digest)}
    assert all(run.record_bytes > 0 for run in kept.runs)
    assert kept.bytes == 1000 + annas.total_bytes
    assert shelf.of(DeviceId("d" * 64)).bytes == 0


def test_a_project_that_is_removed_leaves_the_record_of_its_runs_alone(
    tmp_path: Path, store: ProjectStore, shelf: Shelf
) -> None:
    first, second = sent(store, tmp_path, "a = 1"), sent(store, tmp_path, "a = 2")
    gone = ran(tmp_path, "20261121-191204-9f3a01bc", ANNA, first.digest)
    stays = ran(tmp_path, "20261122-191204-9f3a01bc", ANNA, second.digest)
    assert shelf.remove(ANNA, first.digest) == []
    assert not store.has(first.digest) and store.has(second.digest)
    assert {path.name for path in gone.iterdir()} == RECORD
    assert (stays / run_folder.LOGS).is_dir()
    assert [run.run for run in shelf.of(ANNA).runs] == [stays.name]
    assert shelf.remove(ANNA) == []
    left = shelf.of(ANNA)
    assert (left.projects, left.runs, left.bytes) == ((), (), 0)
    assert {path.name for path in stays.iterdir()} == RECORD
    assert list((tmp_path / "projects").glob("*")) in ([], [tmp_path / "projects" / "incoming"])


def test_what_a_third_laptop_sent_too_stays_its(tmp_path: Path, store: ProjectStore, shelf: Shelf) -> None:
    same = sent(store, tmp_path, "a = 1")
    annas = ran(tmp_path, "20261121-191204-9f3a01bc", ANNA, same.digest)
    cleos = ran(tmp_path, "20261122-191204-9f3a01bc", CLEO, same.digest)
    assert shelf.of(ANNA).projects[0].of_others
    assert shelf.remove(ANNA) == []
    assert store.has(same.digest) and (cleos / run_folder.LOGS).is_dir()
    assert {path.name for path in annas.iterdir()} == RECORD
    assert shelf.of(CLEO).bytes > 0 == shelf.of(ANNA).bytes


def test_another_laptops_project_is_not_removed_by_its_name(
    tmp_path: Path, store: ProjectStore, shelf: Shelf
) -> None:
    cleos = sent(store, tmp_path, "cleo = 1")
    folder = ran(tmp_path, "20261123-191204-9f3a01bc", CLEO, cleos.digest)
    assert shelf.remove(ANNA, cleos.digest) == []
    assert store.has(cleos.digest) and (folder / run_folder.LOGS).is_dir()


def test_a_project_without_a_run_is_known_by_what_its_sender_may_run(
    tmp_path: Path, store: ProjectStore, shelf: Shelf
) -> None:
    digest = sent(store, tmp_path, "a = 1").digest
    assert shelf.of(ANNA).bytes == 0
    assert shelf.of(ANNA, [digest]).projects[0].project == digest
    assert shelf.remove(ANNA, allowed=[digest]) == [] and not store.has(digest)


def test_invariant_a_link_that_a_script_left_is_removed_and_not_what_it_leads_to(
    tmp_path: Path, shelf: Shelf
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_bytes(bytes(1_000_000))
    folder = ran(tmp_path, "20261121-191204-9f3a01bc", ANNA, ProjectId("d" * 64))
    (folder / "link").symlink_to(mine)
    (folder / run_folder.TASKS / "link").symlink_to(mine)
    (tmp_path / "runs" / "20261125-191204-9f3a01bc").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / ".mine.9f3a01bc.part").touch()
    assert shelf.of(ANNA).bytes == 500
    assert shelf.remove(ANNA) == []
    assert {path.name for path in folder.iterdir()} == RECORD
    assert (mine / "precious").stat().st_size == 1_000_000


def test_a_report_that_is_being_written_is_no_harm(tmp_path: Path, shelf: Shelf) -> None:
    folder = ran(tmp_path, "20261121-191204-9f3a01bc", ANNA, ProjectId("d" * 64))
    part = folder / f".{run_folder.REPORT}.9f3a01bc.part"
    part.write_bytes(bytes(100))
    assert shelf.of(ANNA).bytes == 500 and shelf.remove(ANNA) == [] and part.exists()


def test_folders_that_are_no_runs_are_left_alone(tmp_path: Path, shelf: Shelf) -> None:
    folder = ran(tmp_path, "20261121-191204-9f3a01bc", ANNA, ProjectId("d" * 64))
    odd = folder.rename(folder.with_name("another-name"))
    (tmp_path / "runs" / "history.sqlite").write_bytes(b"")
    assert shelf.of(ANNA).runs == ()
    assert shelf.remove(ANNA) == [] and (odd / run_folder.LOGS).is_dir()
