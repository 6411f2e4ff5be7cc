"""Other laptops' leftovers are removed by age and size, leaving only their runs' records."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.history.read import read_plan
from core.project.store import ProjectStore
from core.run import leftovers as module
from core.run.leftovers import DAY_S, GB, RECORD, Leftovers, Trimming, sweep_copies
from core.runtime.background import Background, WorkerThread
from core.vocabulary import run_folder, wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.data import Data
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Listing, Manifest
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Plan, RunSpec
from tests.core.project.making import manifest_for, pieces, write
from tests.core.samples import sample

ANNA, BEN = (DeviceId(letter * 64) for letter in "ab")
FIRST, SECOND, THIRD, FOURTH = (f"2026112{day}-191204-9f3a01bc" for day in (1, 2, 3, 4))
BYTES = 500
"""Size of a run's leftovers, with five folders."""


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    return ProjectStore(tmp_path / "projects")


@pytest.fixture
def leftovers(tmp_path: Path, store: ProjectStore) -> Leftovers:
    (tmp_path / "runs").mkdir()
    return Leftovers(store, tmp_path / "runs", BEN)


def sent(
    store: ProjectStore, tmp_path: Path, words: str, days: float = 0, script: str = "train.py"
) -> Manifest:
    """A received project in the store, or data if without a script; last used that many days ago."""
    files = {"train.py": words.encode()}
    manifest = replace(manifest_for(files), script=script)
    source = write(tmp_path / "sources" / manifest.digest, dict(files))
    receipt = store.receive(manifest)
    for piece in pieces(source, manifest, receipt.wanted):
        receipt.take(piece)
    store.add(receipt)
    age(tmp_path / "projects" / f"{manifest.digest}.json", days)
    return manifest


def ran(tmp_path: Path, run: str, starter: DeviceId = ANNA, days: float = 0) -> Path:
    """The folder of a run that is over, with everything that a run may leave."""
    folder = tmp_path / "runs" / run
    plan = replace(sample(Plan), run=RunId(run), starter=starter, script="train.py")
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
    age(folder / run_folder.PLAN, days)
    return folder


def age(path: Path, days: float) -> None:
    then_s = time.time() - days * DAY_S
    os.utime(path, (then_s, then_s))


def is_whole(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} > RECORD


def test_leftovers_not_used_for_so_many_days_are_removed(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    old, new = sent(store, tmp_path, "a = 1", days=31), sent(store, tmp_path, "a = 2", days=29)
    gone, stays = ran(tmp_path, FIRST, days=31), ran(tmp_path, SECOND, days=29)
    assert leftovers.trim(30 * DAY_S, GB) == BYTES + old.total_bytes
    assert not store.has(old.digest) and store.has(new.digest)
    assert {path.name for path in gone.iterdir()} == RECORD and is_whole(stays)
    assert leftovers.trim(30 * DAY_S, GB) == 0


def test_the_oldest_leftovers_beyond_the_size_are_removed_first(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    project = sent(store, tmp_path, "a = 1", days=4)
    runs = [ran(tmp_path, run, days=days) for run, days in ((FIRST, 3), (SECOND, 1), (THIRD, 2))]
    newest = sent(store, tmp_path, "a = 2", days=2)
    kept = 2 * BYTES + newest.total_bytes
    assert leftovers.trim(30 * DAY_S, kept) == BYTES + project.total_bytes
    assert [is_whole(run) for run in runs] == [False, True, True] and not store.has(project.digest)


def test_files_that_versions_of_a_project_share_count_once(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    """Each has 10 kB of its own, and the same 100 kB."""
    for number in range(3):
        files = {"train.py": b"a = %d" % number + bytes(10_000), "data.bin": bytes(100_000)}
        source, manifest = write(tmp_path / f"source-{number}", dict(files)), manifest_for(files)
        receipt = store.receive(manifest)
        for piece in pieces(source, manifest, receipt.wanted):
            receipt.take(piece)
        store.add(receipt)
        age(tmp_path / "projects" / f"{manifest.digest}.json", 9 - number)
    kept = list((tmp_path / "projects").glob("*/data.bin"))
    assert len(kept) == 3 and len({each.stat().st_ino for each in kept}) == 1
    assert leftovers.trim(30 * DAY_S, 140_000) == 0
    assert leftovers.trim(30 * DAY_S, 125_000) == 10_005
    assert leftovers.trim(1, 1) == 120_010 and not store.digests()


def test_the_newest_run_and_project_stay_however_large(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    old, new = (sent(store, tmp_path, f"a = {days}", days=days) for days in (5, 4))
    runs = [ran(tmp_path, run, days=days) for run, days in ((FIRST, 3), (SECOND, 2))]
    assert leftovers.trim(30 * DAY_S, 1) == BYTES + old.total_bytes
    assert [is_whole(run) for run in runs] == [False, True]
    assert store.has(new.digest) and not store.has(old.digest)
    data = [sent(store, tmp_path, f"a = {days}", days, script="") for days in (7, 6)]
    leftovers.trim(30 * DAY_S, 1)
    assert [store.has(each.digest) for each in data] == [False, True] and store.has(new.digest)
    assert leftovers.trim(2 * DAY_S, GB) == BYTES + new.total_bytes + data[1].total_bytes


def test_all_that_was_sent_for_the_last_run_stays_however_large(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    data = [sent(store, tmp_path, f"a = {days}", days, script="") for days in (9, 8, 7, 6)]
    part, other = came_in_part(store, tmp_path, "a = 1", days=5), came_in_part(store, tmp_path, "a = 2", 4)
    folder = ran(tmp_path, FIRST, days=3)
    plan = read_plan(folder)
    assert plan is not None
    digests = [str(each.digest) for each in data[1:]] + [part.name]
    used = tuple(replace(sample(Data), listing=Listing(digest=digest, size=1)) for digest in digests)
    (folder / run_folder.PLAN).write_bytes(wire.to_json(replace(plan, data=used)))
    age(folder / run_folder.PLAN, 3)
    assert leftovers.trim(30 * DAY_S, 1) == data[0].total_bytes
    assert [store.has(each.digest) for each in data] == [False, True, True, True]
    assert part.exists() and other.exists()
    assert leftovers.trim(4.5 * DAY_S, 1) > 0 and not part.exists() and other.exists()


def test_all_that_came_for_a_run_that_this_laptop_was_to_join_stays_even_in_part(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    data = [sent(store, tmp_path, f"a = {days}", days, script="") for days in (9, 8, 7)]
    parts = [came_in_part(store, tmp_path, f"b = {days}", days) for days in (6, 5, 4)]
    store.expect((data[1].digest, ProjectId(parts[1].name)))
    assert leftovers.trim(30 * DAY_S, 1) > 0
    assert [store.has(each.digest) for each in data] == [False, True, True]
    assert [part.exists() for part in parts] == [False, True, True]
    store.expect(())
    assert leftovers.trim(30 * DAY_S, 1) > 0
    assert [part.exists() for part in parts] == [False, False, True]


def test_leftovers_newer_than_the_clock_are_removed_too_when_nothing_is_to_be_kept(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    ran(tmp_path, FIRST, days=-1)
    assert leftovers.trim(0, 0) == BYTES


def test_only_records_and_own_runs_stay_when_nothing_is_to_be_kept(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    project = sent(store, tmp_path, "a = 1")
    annas, own = ran(tmp_path, FIRST), ran(tmp_path, SECOND, starter=BEN, days=1000)
    assert leftovers.trim(0, 0) == BYTES + project.total_bytes
    assert {path.name for path in annas.iterdir()} == RECORD and is_whole(own)
    assert list((tmp_path / "projects").glob("*")) in ([], [tmp_path / "projects" / "incoming"])


def test_only_leftovers_too_large_to_bring_back_are_deleted_from_own_runs(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    own = [ran(tmp_path, run, starter=BEN, days=days) for run, days in ((FIRST, 31), (SECOND, 3), (THIRD, 2))]
    for folder in own:
        (folder / run_folder.LEFT).mkdir()
        (folder / run_folder.LEFT / "large.bin").write_bytes(bytes(1000))
    annas = ran(tmp_path, FOURTH, days=4)

    def left() -> list[bool]:
        return [(folder / run_folder.LEFT).exists() for folder in own]

    assert leftovers.trim(30 * DAY_S, GB) == 1000 and left() == [False, True, True]
    assert leftovers.trim(30 * DAY_S, 1) == 1000 and left() == [False, False, True]
    assert is_whole(annas), "the newest of other laptops' runs stays, whatever own ones leave"
    assert leftovers.trim(2 * DAY_S, GB) == 1000 + BYTES and left() == [False, False, False]
    assert all(is_whole(folder) for folder in own)


def test_each_kind_is_measured_as_it_would_be_removed(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    assert leftovers.measure() == (0, 0, 0, 0)
    project, data = sent(store, tmp_path, "a = 1"), sent(store, tmp_path, "a = 22", script="")
    came_in_part(store, tmp_path, "a = 333")
    ran(tmp_path, FIRST)
    own = ran(tmp_path, SECOND, starter=BEN)
    (own / run_folder.LEFT).mkdir()
    (own / run_folder.LEFT / "large.bin").write_bytes(bytes(1000))
    measured = leftovers.measure()
    assert measured == (project.total_bytes + 2000, data.total_bytes, BYTES, 1000)
    assert leftovers.trim(0, 0) == sum(measured) and leftovers.measure() == (0, 0, 0, 0)


def came_in_part(store: ProjectStore, tmp_path: Path, words: str, days: float = 0) -> Path:
    """A project whose last piece never arrived: 2,000 bytes did."""
    files = {"data.bin": bytes(2000), "train.py": words.encode()}
    manifest = manifest_for(files)
    source = write(tmp_path / "sources" / manifest.digest, dict(files))
    receipt = store.receive(manifest)
    for piece in list(pieces(source, manifest, receipt.wanted))[:-1]:
        receipt.take(piece)
    folder = tmp_path / "projects" / "incoming" / manifest.digest
    age(folder, days)
    return folder


def test_partly_received_projects_are_removed_like_others(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    parts = [came_in_part(store, tmp_path, f"a = {days}", days) for days in (31, 4, 3, 2, 1)]
    assert leftovers.trim(30 * DAY_S, GB) == 2000
    assert [part.exists() for part in parts] == [False, True, True, True, True]
    assert leftovers.trim(30 * DAY_S, 4000) == 4000
    assert [part.exists() for part in parts] == [False, False, False, True, True]
    assert leftovers.trim(30 * DAY_S, 1) == 2000
    assert parts[-1].exists()
    assert leftovers.trim(0, 0) == 2000
    assert not parts[-1].exists()


def test_a_run_that_is_deleted_meanwhile_does_no_harm(
    tmp_path: Path, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, other = ran(tmp_path, FIRST), ran(tmp_path, SECOND)

    def read_and_delete(folder: Path) -> Plan | None:
        plan = read_plan(folder)
        if folder == gone:
            shutil.rmtree(folder)
        return plan

    monkeypatch.setattr(module, "read_plan", read_and_delete)
    assert leftovers.trim(0, 0) == BYTES
    assert {path.name for path in other.iterdir()} == RECORD


@pytest.mark.parametrize(
    "known", [{"source": "/home/ben/train.py"}, {"spec": RunSpec(script="/home/ben/train.py")}]
)
def test_own_runs_stay_when_this_laptop_has_a_new_key(
    tmp_path: Path, leftovers: Leftovers, known: dict[str, Any]
) -> None:
    own, annas = (ran(tmp_path, run, starter=ANNA, days=31) for run in (FIRST, SECOND))
    for folder, more in ((own, known), (annas, {})):
        entry = RunEntry(run=RunId(folder.name), started_s=0, script="train.py", phase=Finished(), **more)
        (folder / run_folder.SUMMARY).write_bytes(wire.to_json(entry))
    assert leftovers.trim(0, 0) == BYTES
    assert is_whole(own) and {path.name for path in annas.iterdir()} == RECORD


def test_invariant_a_link_that_a_script_left_is_removed_and_not_what_it_leads_to(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_bytes(bytes(1_000_000))
    folder = ran(tmp_path, FIRST)
    (folder / "link").symlink_to(mine)
    (folder / run_folder.TASKS / "link").symlink_to(mine)
    (tmp_path / "runs" / THIRD).symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / ".mine.9f3a01bc.part").touch()
    assert leftovers.trim(0, 0) == BYTES
    assert {path.name for path in folder.iterdir()} == RECORD
    assert (mine / "precious").stat().st_size == 1_000_000


def test_a_report_that_is_being_written_does_no_harm(tmp_path: Path, leftovers: Leftovers) -> None:
    folder = ran(tmp_path, FIRST)
    part = folder / f".{run_folder.REPORT}.9f3a01bc.part"
    part.write_bytes(bytes(100))
    assert leftovers.trim(0, 0) == BYTES and part.exists()


def test_folders_that_are_no_runs_are_left_alone(tmp_path: Path, leftovers: Leftovers) -> None:
    folder = ran(tmp_path, FIRST)
    odd = folder.rename(folder.with_name("another-name"))
    (tmp_path / "runs" / "history.sqlite").write_bytes(b"")
    assert leftovers.trim(0, 0) == 0
    assert (odd / run_folder.LOGS).is_dir()


def test_leftovers_that_cannot_be_removed_are_named(
    tmp_path: Path, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ran(tmp_path, FIRST)
    monkeypatch.setattr(module, "remove_tree", lambda path: None)
    with pytest.raises(TandemError, match=f"{FIRST}/") as refusal:
        leftovers.trim(0, 0)
    assert refusal.value.code == "not-all-removed" and is_whole(folder)


def test_working_copies_that_a_killed_tandem_left_are_removed_except_a_chiefs(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for run, task in (("1", "worker-0"), ("2", "worker-1"), ("2", "chief-0")):
        (runs / run / run_folder.TASKS / task / "work").mkdir(parents=True)
    (runs / "4" / run_folder.TASKS / "chief-0").mkdir(parents=True)  # the starter's, beside its own folder
    (tmp_path / "mine").mkdir()
    (runs / "3" / run_folder.TASKS).mkdir(parents=True)
    (runs / "3" / run_folder.TASKS / "worker-0").symlink_to(tmp_path / "mine")
    sweep_copies(runs)
    left = sorted(str(path.relative_to(runs)) for path in runs.rglob("*"))
    assert left == ["1", "2", "2/tasks", "2/tasks/chief-0", "2/tasks/chief-0/work", "3", "4"]
    assert (tmp_path / "mine").is_dir(), "a link is removed, and never what it leads to"


def test_a_project_whose_list_was_not_written_is_removed_in_time(
    tmp_path: Path, store: ProjectStore, leftovers: Leftovers
) -> None:
    orphan, newer = sent(store, tmp_path, "a = 1"), sent(store, tmp_path, "a = 2")
    for each in (orphan, newer):
        (tmp_path / "projects" / f"{each.digest}.json").unlink()
    age(tmp_path / "projects" / orphan.digest, 31)
    assert leftovers.trim(30 * DAY_S, GB) == orphan.total_bytes
    assert not (tmp_path / "projects" / orphan.digest).exists()
    assert (tmp_path / "projects" / newer.digest).exists()


async def test_reports_are_cleared_even_if_something_else_cannot_be(
    tmp_path: Path, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(tmp_path, FIRST)
    monkeypatch.setattr(module, "remove_tree", lambda path: None)
    files, cleared = WorkerThread("files"), list[str]()

    async def also() -> int:
        cleared.append("reports")
        return 1

    with pytest.raises(TandemError, match=f"{FIRST}/"):
        await Trimming(leftovers, files, Background()).clear(also)
    assert cleared == ["reports"]
    await files.close()


async def test_a_measurement_under_way_is_shared_and_comes_after_a_trim(
    tmp_path: Path, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(tmp_path, FIRST)
    files, measured, measure = WorkerThread("files"), list[tuple[int, ...]](), leftovers.measure

    def counted() -> tuple[int, int, int, int]:
        measured.append(found := measure())
        return found

    monkeypatch.setattr(leftovers, "measure", counted)
    trimming = Trimming(leftovers, files, Background())
    await asyncio.gather(*(trimming.measure(0) for _ in range(3)))
    assert measured == [(0, 0, BYTES, 0)]
    trimming.begin(0, 0)
    assert (await trimming.measure(7)).runs_bytes == 0 and len(measured) == 2
    await files.close()
