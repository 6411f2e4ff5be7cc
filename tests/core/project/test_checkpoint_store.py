"""Checkpoints on a disk: complete or absent, two of them, and never one with altered bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project import checkpoint_store
from core.project.checkpoint_store import Checkpoint, Exactness, Head, KeptFile
from core.project.files import ReadMeter
from core.vocabulary import run_folder, wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId, RunId
from core.vocabulary.manifest import manifest_of
from core.vocabulary.plan import Moment, Resumption
from tests.core.cluster.laptops import plan_of


def write(folder: Path, step: int, data: bytes = b"weights") -> Checkpoint:
    files: dict[str, list[bytes | memoryview]] = {"now.json": [b"{}", b" "], "now.bin": [memoryview(data)]}
    return checkpoint_store.write(folder, Moment(step=step, epoch=1), (3, 1), files, {})


def test_the_newest_two_stay(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        write(tmp_path, step)
    assert len(list(tmp_path.iterdir())) == 2
    found = checkpoint_store.newest(tmp_path)
    assert found is not None and found.head.moment.step == 30 and found.head.shares == (3, 1)
    assert checkpoint_store.newest_by_size(tmp_path) == found


def steps(folder: Path) -> list[int]:
    return [found.head.moment.step for found in checkpoint_store.complete_by_size(folder)]


def test_the_newest_audited_checkpoint_is_kept_too(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40, 50):
        checkpoint_store.write(tmp_path, Moment(step=step), (3, 1), {"now.bin": [b"w"]}, {}, sure_step=25)
    assert steps(tmp_path) == [50, 40, 20]


def test_a_checkpoint_says_how_the_result_may_differ_and_an_older_one_says_nothing(tmp_path: Path) -> None:
    known = Exactness(told=("Step 3 was not audited.",))
    kept = checkpoint_store.write(tmp_path, Moment(step=4), (3, 1), {}, {}, exactness=known)
    manifest = Path(kept.folder) / checkpoint_store.MANIFEST
    assert checkpoint_store.read_head(manifest.read_bytes()).exactness == known
    older = json.loads(manifest.read_bytes())
    del older["exactness"]
    assert checkpoint_store.read_head(json.dumps(older).encode()).exactness == Exactness()


def test_a_training_goes_back_by_whole_batches(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        checkpoint_store.write(tmp_path, Moment(step=step), (3, 1), {"now.bin": [b"w"]}, {}, sure_step=10)
    checkpoint_store.go_back(tmp_path, Moment(step=10))
    found = checkpoint_store.newest(tmp_path)
    assert found is not None and found.head.whole and steps(tmp_path) == [10]


def spoil(checkpoint: Checkpoint, how: str) -> None:
    path = Path(checkpoint.folder) / "now.bin"
    match how:
        case "one bit":
            path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
        case "cut":
            path.write_bytes(path.read_bytes()[:-1])
        case "gone":
            path.unlink()
        case "a link":
            path.rename(path.with_suffix(".old"))
            path.symlink_to(path.with_suffix(".old"))
        case "no manifest":
            (path.parent / checkpoint_store.MANIFEST).unlink()
        case "half a manifest":
            (path.parent / checkpoint_store.MANIFEST).write_bytes(b'{"format":"tandem-checkpoint-1"')
        case "a pipe for a manifest":
            (path.parent / checkpoint_store.MANIFEST).unlink()
            os.mkfifo(path.parent / checkpoint_store.MANIFEST)
        case "a manifest without an end":
            (path.parent / checkpoint_store.MANIFEST).unlink()
            (path.parent / checkpoint_store.MANIFEST).symlink_to("/dev/zero")
        case "terabytes that take no room":
            os.truncate(path, 8 << 40)


HARMFUL = ["a pipe for a manifest", "a manifest without an end", "terabytes that take no room"]
"""A script within walls may leave them where Tandem reads, which must neither block nor read forever."""


@pytest.mark.parametrize(
    "how",
    [
        *("one bit", "cut", "gone", "a link", "no manifest", "half a manifest"),
        *(
            pytest.param(how, marks=pytest.mark.skipif(os.name == "nt", reason="no such files"))
            for how in HARMFUL
        ),
    ],
)
def test_a_damaged_checkpoint_is_skipped_for_the_previous_one(tmp_path: Path, how: str) -> None:
    write(tmp_path, 10)
    spoil(write(tmp_path, 20), how)
    found = checkpoint_store.newest(tmp_path)
    assert found is not None and found.head.moment.step == 10


def test_invariant_a_link_to_another_runs_checkpoint_is_ignored(tmp_path: Path) -> None:
    there = write(tmp_path / "other", 20)
    own = write(tmp_path / "own", 10)
    (tmp_path / "own/00000009").symlink_to(there.folder)
    assert checkpoint_store.newest_by_size(tmp_path / "own") == own
    digest = checkpoint_store.listing(there).digest
    assert checkpoint_store.find(tmp_path / "own", digest) is None


def test_a_half_written_checkpoint_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, 10)
    half = tmp_path / ".0123abcd.part"
    half.mkdir()
    (half / "now.bin").write_bytes(b"wei")
    found = checkpoint_store.newest(tmp_path)
    assert found is not None and found.head.moment.step == 10


def test_a_failing_disk_leaves_existing_checkpoints(tmp_path: Path) -> None:
    write(tmp_path, 10)

    def broken() -> object:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoint_store.write(tmp_path, Moment(step=20), (1,), {"now.bin": broken()}, {})  # type: ignore[dict-item]
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


def test_unchanged_files_are_not_written_again(tmp_path: Path) -> None:
    first = checkpoint_store.write(tmp_path, Moment(step=1), (1,), {"fit-0.bin": [b"long ago"]}, {})
    known = {file.name: (Path(first.folder) / file.name, file) for file in first.head.files}
    for step in (2, 3, 4):
        newest = checkpoint_store.write(tmp_path, Moment(step=step), (1,), {"now.bin": [b"new"]}, known)
        known = {"fit-0.bin": (Path(newest.folder) / "fit-0.bin", known["fit-0.bin"][1])}
    assert checkpoint_store.newest(tmp_path) == newest
    assert (Path(newest.folder) / "fit-0.bin").read_bytes() == b"long ago"


def head(*files: KeptFile, format: str = checkpoint_store.FORMAT) -> bytes:
    return wire.to_json(Head(format=format, moment=Moment(), shares=(1,), files=files))


GOOD = KeptFile(name="now.bin", size=3, sha256="0" * 64)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{" * 2_000_000,
        head(GOOD, format="tandem-checkpoint-9"),
        head(GOOD, GOOD),
        head(KeptFile(name="../now.bin", size=3, sha256="0" * 64)),
        head(KeptFile(name="/etc/passwd", size=3, sha256="0" * 64)),
        head(KeptFile(name="manifest.json", size=3, sha256="0" * 64)),
        head(KeptFile(name="now.bin\x00.bin", size=3, sha256="0" * 64)),
        head(KeptFile(name="now.bin", size=-3, sha256="0" * 64)),
        head(KeptFile(name="now.bin", size=3, sha256="../../x")),
        head(KeptFile(name="now.bin", size=1 << 60, sha256="0" * 64)),
    ],
)
def test_invariant_a_manifest_that_leads_elsewhere_is_refused(data: bytes) -> None:
    with pytest.raises(TandemError):
        checkpoint_store.read_head(data)


def test_a_good_manifest_is_read() -> None:
    assert checkpoint_store.read_head(head(GOOD)).files == (GOOD,)


def test_the_oldest_runs_lose_their_checkpoints_when_all_take_too_much_space(tmp_path: Path) -> None:
    runs = [tmp_path / f"2026010{day}-000000-0123abcd" for day in (1, 2, 3)]
    for run in runs:
        write(run / run_folder.CHECKPOINTS, 10, b"w" * 1_000_000)
        write(run / f"{run_folder.CHECKPOINTS}-worker-1", 10)  # from a second trainer on this laptop
        (run / "summary.json").write_text("{}")
    checkpoint_store.trim(tmp_path, limit_bytes=2_500_000)
    assert [checkpoint_store.newest_by_size(run / run_folder.CHECKPOINTS) is not None for run in runs] == [
        False,
        True,
        True,
    ]
    checkpoint_store.trim(tmp_path, limit_bytes=1)
    assert [checkpoint_store.newest_by_size(run / run_folder.CHECKPOINTS) is not None for run in runs] == [
        False,
        False,
        True,
    ]
    assert all((run / "summary.json").exists() for run in runs)


@pytest.mark.skipif(os.name == "nt", reason="no path is so long")
@pytest.mark.parametrize("name", ["d", "d" * 40])
def test_deeply_nested_folders_of_a_script_do_not_prevent_making_room(tmp_path: Path, name: str) -> None:
    """Deeper than Python recurses, with paths longer than the system allows."""
    runs = [tmp_path / f"2026010{day}-000000-0123abcd" for day in (1, 2)]
    for run in runs:
        write(run / run_folder.CHECKPOINTS, 10)
    here = Path.cwd()
    try:
        os.chdir(runs[0] / run_folder.CHECKPOINTS)
        for _ in range(1_500):
            Path(name).mkdir()
            os.chdir(name)
    finally:
        os.chdir(here)
    checkpoint_store.trim(tmp_path, limit_bytes=1)
    assert [(run / run_folder.CHECKPOINTS).exists() for run in runs] == [False, True]


def test_equal_checkpoints_of_members_have_equal_bytes(tmp_path: Path) -> None:
    """One wrote all of it now; the other already had a part of it."""
    ended = {"fit-0.json": [b"[]"], "fit-0.bin": [b""]}
    now = {"now.json": [b"{}"], "now.bin": [b"weights"]}
    earlier = checkpoint_store.write(tmp_path / "one", Moment(step=1, fit=1), (1, 1), ended, {})
    had = {file.name: (Path(earlier.folder) / file.name, file) for file in earlier.head.files}
    at = Moment(step=2, fit=1)
    one = checkpoint_store.write(tmp_path / "one", at, (1, 1), now, had)
    other = checkpoint_store.write(tmp_path / "other", at, (1, 1), {**ended, **now}, {})
    assert checkpoint_store.listing(one).digest == checkpoint_store.listing(other).digest


def test_a_checkpoint_is_found_by_its_listing_and_adopted(tmp_path: Path) -> None:
    made = write(tmp_path / "one", 10)
    listing = checkpoint_store.listing(made)
    checkpoint_store.check_listing(listing)
    assert [file.path for file in listing.files] == ["manifest.json", "now.bin", "now.json"]
    assert made.head.total_bytes == len(b"weights") + len(b"{} ")
    write(tmp_path / "one", 20)
    told: list[tuple[int, int]] = []
    meter = ReadMeter(lambda done, total: told.append((done, total)), every_s=0)
    assert checkpoint_store.find(tmp_path / "one", listing.digest, meter) == made
    assert told[-1] == (made.head.total_bytes, made.head.total_bytes), "who waits for it hears how far it is"
    assert checkpoint_store.find(tmp_path / "none", listing.digest) is None
    place = checkpoint_store.adopt(made, tmp_path / "other")
    assert place == checkpoint_store.first(tmp_path / "other") == tmp_path / "other" / "00000001"
    adopted = checkpoint_store.newest(tmp_path / "other")
    assert adopted is not None and adopted.head == made.head
    assert checkpoint_store.next_place(tmp_path / "other").name == "00000002"
    spoil(made, "one bit")
    assert checkpoint_store.find(tmp_path / "one", listing.digest) is None, "not whole any more"
    spoil(made, "no manifest")
    assert checkpoint_store.find(tmp_path / "one", listing.digest) is None


def test_a_resumed_run_shares_the_disk_space_of_its_first_checkpoint(tmp_path: Path) -> None:
    runs = [tmp_path / run / run_folder.CHECKPOINTS for run in ("1", "2")]
    checkpoint_store.adopt(write(runs[0], 10, bytes(100_000)), runs[1])
    checkpoint_store.trim(tmp_path, limit_bytes=150_000)
    assert all(map(checkpoint_store.newest, runs))
    checkpoint_store.trim(tmp_path, limit_bytes=50_000)
    assert [checkpoint_store.newest(each) is not None for each in runs] == [False, True]


def test_checkpoints_complete_by_size_are_listed_newest_first(tmp_path: Path) -> None:
    for step in (10, 20):
        last = write(tmp_path, step)
    assert [each.head.moment.step for each in checkpoint_store.complete_by_size(tmp_path)] == [20, 10]
    spoil(last, "cut")
    assert [each.head.moment.step for each in checkpoint_store.complete_by_size(tmp_path)] == [10]
    spoil(last, "gone")
    assert [each.head.moment.step for each in checkpoint_store.complete_by_size(tmp_path)] == [10]
    assert (
        checkpoint_store.complete_by_size(tmp_path / "none") == []
        and checkpoint_store.newest_by_size(tmp_path / "none") is None
    )


@pytest.mark.parametrize("name", ["../manifest.json", "now.exe", "Now.bin", "a/now.bin"])
def test_invariant_a_listing_names_only_files_of_a_checkpoint(tmp_path: Path, name: str) -> None:
    listing = checkpoint_store.listing(write(tmp_path, 10))
    odd = replace(listing.files[1], path=name)
    with pytest.raises(TandemError):
        checkpoint_store.check_listing(manifest_of("", [listing.files[0], odd]))
    with pytest.raises(TandemError, match="lists a file"):
        checkpoint_store.check_listing(manifest_of("", listing.files[1:]))


def test_bytes_are_copied_where_the_disk_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    made = write(tmp_path / "one", 10)
    monkeypatch.setattr(checkpoint_store.os, "link", refuse)  # type: ignore[attr-defined]
    checkpoint_store.adopt(made, tmp_path / "other")
    adopted = checkpoint_store.newest(tmp_path / "other")
    assert adopted is not None and adopted.head == made.head


def test_only_a_resumed_run_has_a_first_checkpoint(tmp_path: Path) -> None:
    alone = plan_of()
    assert checkpoint_store.resumed(tmp_path, alone) is None
    going_on = replace(
        alone, resume=Resumption(run=RunId("before"), checkpoint=ProjectId("a" * 64), moment=Moment())
    )
    assert checkpoint_store.resumed(tmp_path, going_on) == tmp_path / run_folder.CHECKPOINTS / "00000001"


@pytest.mark.parametrize("count", [checkpoint_store.LIMIT_FILES, checkpoint_store.LIMIT_FILES + 1])
def test_a_manifest_is_limited_in_files_and_bytes(count: int) -> None:
    names = [KeptFile(name=f"n{number}.bin", size=0, sha256="0" * 64) for number in range(count)]
    size = checkpoint_store.LIMIT_BYTES + count - checkpoint_store.LIMIT_FILES
    large = KeptFile(name="now.bin", size=size, sha256="0" * 64)
    for files in (names, [large]):
        if count == checkpoint_store.LIMIT_FILES:
            checkpoint_store.read_head(head(*files))
        else:
            with pytest.raises(TandemError):
                checkpoint_store.read_head(head(*files))


def test_a_finished_training_keeps_no_checkpoints(tmp_path: Path) -> None:
    write(tmp_path / "here", 10)
    checkpoint_store.clear(tmp_path / "here")
    checkpoint_store.clear(tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_checkpoints_are_kept_once_a_script_runs_and_tandems_modules_are_hidden(tmp_path: Path) -> None:
    """``sure_step`` reads the older ones: no type can be looked up by its name any more."""
    program = (
        "import pathlib, sys\n"
        "from core.project import checkpoint_store\n"
        "from core.trainer import script\n"
        "from core.vocabulary.plan import Moment\n"
        "script.hide_tandem()\n"
        "for step in range(1, 5):\n"
        "    folder, files = pathlib.Path(sys.argv[1]), {'now.json': [b'{}']}\n"
        "    checkpoint_store.write(folder, Moment(step=step), (1,), files, {}, sure_step=2)\n"
    )
    root = Path(checkpoint_store.__file__).parents[2]
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "kept")], cwd=root, check=True, timeout=60)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["00000002", "00000003", "00000004"]
