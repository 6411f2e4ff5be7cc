from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.history.history import MOST_NAMED, History
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import MOST_NAME, MOST_NOTE
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed, Finished, Phase, Training
from core.vocabulary.progress import Summary
from core.vocabulary.run_folder import DELETED, SUMMARY


def entry(number: int, phase: Phase | None = None) -> RunEntry:
    return RunEntry(
        run=RunId(f"20261121-1912{number:02}-9f3a01bc"),
        started_s=1000.0 + number,
        script="train.py",
        devices=("Anna", "Ben"),
        phase=phase or Finished(),
        summary=Summary(epochs=number),
    )


def opened(folder: Path) -> History:
    history = History(folder)
    history.open()
    return history


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = opened(tmp_path)
    yield history
    history.close()


def keep_folder(folder: Path, kept: RunEntry) -> None:
    (folder / kept.run).mkdir()
    (folder / kept.run / SUMMARY).write_bytes(wire.to_json(kept))


def kept_on_disk(folder: Path) -> list[RunEntry]:
    return [wire.from_json(path.read_bytes(), RunEntry) for path in sorted(folder.glob(f"*/{SUMMARY}"))]


def test_the_newest_come_first_and_the_newest_of_a_run_counts(history: History) -> None:
    for number in range(5):
        history.put(entry(number, Training()))
        history.put(entry(number))
    assert history.newest(3) == (entry(4), entry(3), entry(2))
    assert history.newest(0) == ()
    assert history.newest(-(2**80)) == ()
    assert history.newest(2**80) == history.newest(5)


def test_the_history_outlives_the_node(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.put(entry(1))
    first.close()
    second = opened(tmp_path)
    assert second.newest(5) == (entry(1),)
    assert second.problem is None
    second.close()


def test_a_run_is_found_by_a_unique_beginning(history: History) -> None:
    history.put(entry(1))
    history.put(entry(2))
    assert history.find("20261121-191201") == entry(1)
    for beginning, code in (("2026", "run-ambiguous"), ("1999", "run-unknown"), ("%", "run-unknown")):
        with pytest.raises(TandemError) as caught:
            history.find(beginning)
        assert caught.value.code == code


def test_a_run_that_was_under_way_is_marked_as_cut_off(tmp_path: Path) -> None:
    first = opened(tmp_path)
    under_way = entry(1, Training())
    first.put(under_way)
    first.close()
    second = opened(tmp_path)
    (kept,) = second.newest(5)
    assert isinstance(kept.phase, Failed)
    assert "ended while this run was under way" in kept.phase.problem.what
    assert wire.from_json((tmp_path / kept.run / SUMMARY).read_bytes(), RunEntry) == kept
    second.close()


def test_a_run_is_found_with_those_that_it_resumes_even_if_files_were_tampered_with(history: History) -> None:
    first, second = entry(1), replace(entry(2), resumed=entry(1).run)
    for each in (first, second, entry(3)):
        history.put(each)
    assert history.chain(second) == (second, first)
    history.put(around := replace(first, resumed=second.run))
    assert history.chain(second) == (second, around)


def test_a_full_disk_hides_no_run_that_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(tmp_path)
    first.put(entry(1, Training()))
    first.close()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("core.history.history.write_atomically", full)
        second = opened(tmp_path)
        (kept,) = second.newest(5)
        assert isinstance(kept.phase, Failed) and second.problem is None
    # With room again, its folder is reported too.
    assert second.newest(5) == (kept,)
    assert wire.from_json((tmp_path / kept.run / SUMMARY).read_bytes(), RunEntry) == kept
    second.close()


def test_the_index_of_an_older_tandem_is_left_alone(tmp_path: Path) -> None:
    keep_folder(tmp_path, entry(1))
    (tmp_path / "20260101-000000-00000000").mkdir()  # a folder without a summary
    (tmp_path / "history.db").write_bytes(b"not a database at all")
    history = opened(tmp_path)
    assert history.newest(5) == (entry(1),) and history.problem is None
    assert (tmp_path / "history.db").read_bytes() == b"not a database at all"
    history.close()


def test_a_run_whose_summary_is_damaged_is_named_and_its_folder_left_alone(tmp_path: Path) -> None:
    for number in (1, 2):
        keep_folder(tmp_path, entry(number))
    damaged = tmp_path / entry(1).run / SUMMARY
    damaged.write_bytes(b'{"run": "2026')
    history = opened(tmp_path)
    assert history.newest(5) == (entry(2),)
    assert history.problem is not None
    assert "The list lacks one run, because summary.json is damaged" in history.problem.what
    assert damaged.parent.name in history.problem.fix
    assert damaged.read_bytes() == b'{"run": "2026'
    history.close()


def test_failed_writes_are_repeated_once_there_is_room(tmp_path: Path) -> None:
    history = opened(tmp_path)
    for number in (1, 2, 3):
        refusing = tmp_path / entry(number).run
        refusing.write_text("in the way of the folder")
        with pytest.raises(OSError, match="exists"):
            history.put(entry(number))
    assert history.newest(5) == (entry(3), entry(2), entry(1))
    # Each time there is room for one more run.
    (tmp_path / entry(1).run).unlink()
    assert history.newest(1) == (entry(3),)
    assert kept_on_disk(tmp_path) == [entry(1)]
    (tmp_path / entry(2).run).unlink()
    history.put(entry(4))
    assert kept_on_disk(tmp_path) == [entry(1), entry(2), entry(4)]
    named = history.label(entry(3).run, "Late", None)
    (tmp_path / entry(3).run).unlink()
    history.close()
    again = opened(tmp_path)
    assert again.newest(5) == (entry(4), named, entry(2), entry(1))
    again.close()


def test_a_disk_that_fails_for_a_while_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_folder(tmp_path, entry(1))

    def refused(*arguments: object) -> Iterator[Path]:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "iterdir", refused)
        history = opened(tmp_path)
        problem = history.problem
        assert problem is not None and "Input/output error" in problem.what
        history.put(entry(2, Training()))
        with pytest.raises(TandemError):
            history.newest(5)
    # The next look finds everything; a run under way now is not taken for interrupted.
    assert history.newest(5) == (entry(2, Training()), entry(1))
    assert history.problem is None
    history.close()
    with pytest.raises(TandemError):
        history.newest(5)


def test_a_history_whose_folder_is_a_file_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    history = opened(tmp_path / "runs")
    assert history.problem is not None
    assert history.problem.code == "history-unusable"
    with pytest.raises(OSError):
        history.put(entry(1))  # a run goes on without it
    with pytest.raises(TandemError) as caught:
        history.newest(5)
    assert caught.value.code == "history-unusable"


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "The list lacks one run"), (2, "The list lacks 2 runs"), (30, "The list lacks 30 runs")],
)
def test_the_number_of_damaged_runs_is_reported_and_some_are_named(
    tmp_path: Path, count: int, words: str
) -> None:
    for number in range(count):
        keep_folder(tmp_path, entry(number))
        (tmp_path / entry(number).run / SUMMARY).write_bytes(b"{")
    history = opened(tmp_path)
    problem = history.problem
    history.close()
    assert problem is not None and problem.code == "history-incomplete"
    assert problem.what.startswith(words)
    assert problem.what.endswith(", because summary.json is damaged.")
    named = problem.fix.count("20261121-")
    assert named == min(count, MOST_NAMED)
    assert problem.fix.endswith(" ….") == (count > MOST_NAMED)


def test_a_whole_id_finds_its_run_although_another_begins_with_it(history: History) -> None:
    longer = replace(entry(1), run=RunId(entry(1).run + "0"))
    for each in (entry(1), longer):
        history.put(each)
    assert history.find(entry(1).run) == entry(1)
    assert history.find(longer.run) == longer


def test_a_closed_history_is_not_opened_again_by_reading(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.close()
    with pytest.raises(TandemError) as caught:
        history.newest(1)
    assert caught.value.code == "history-closed"


def test_a_folder_with_another_runs_summary_is_left_out(tmp_path: Path) -> None:
    keep_folder(tmp_path, entry(1))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / SUMMARY).write_bytes(wire.to_json(entry(2)))
    (tmp_path / "empty").mkdir()
    history = opened(tmp_path)
    assert history.newest(9) == (entry(1),) and history.problem is None
    history.close()


def test_a_run_is_named_and_annotated_in_its_folder_too(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.put(entry(1))
    history.label(entry(1).run, " Warm start ", None)
    kept = history.label(entry(1).run, None, "half the learning rate")
    assert (kept.name, kept.note) == ("Warm start", "half the learning rate")
    history.close()
    again = opened(tmp_path)
    assert again.newest(5) == (kept,)
    assert again.label(kept.run, "", None).name == ""
    again.close()


@pytest.mark.parametrize(("name", "note"), [("n" * (MOST_NAME + 1), None), (None, "n" * (MOST_NOTE + 1))])
def test_a_name_that_is_too_long_is_refused(history: History, name: str | None, note: str | None) -> None:
    history.put(entry(1))
    with pytest.raises(TandemError) as caught:
        history.label(entry(1).run, name, note)
    assert caught.value.code == "label-too-long"
    assert history.newest(5) == (entry(1),)


def test_a_record_of_an_earlier_tandem_has_no_name_and_no_best() -> None:
    old = b'{"run":"20261121-191201-9f3a01bc","started_s":1.0,"script":"a.py","phase":{"type":"finished"}}'
    read = wire.from_json(old, RunEntry)
    assert (read.name, read.note, read.best) == ("", "", {})


def test_a_deleted_run_and_its_folder_are_gone_for_good(tmp_path: Path) -> None:
    history = opened(tmp_path)
    for number in (1, 2):
        history.put(entry(number))
    (tmp_path / entry(1).run / "outputs").mkdir()
    (tmp_path / entry(1).run / "outputs" / "model.keras").write_bytes(b"weights")
    history.delete(entry(1).run)
    assert history.newest(5) == (entry(2),)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [entry(2).run]
    history.close()
    again = opened(tmp_path)
    assert again.newest(5) == (entry(2),)
    with pytest.raises(TandemError) as caught:
        again.delete(entry(1).run)
    assert caught.value.code == "run-unknown"
    again.close()


def test_a_run_under_way_is_not_deleted(tmp_path: Path, history: History) -> None:
    history.put(entry(1, Training()))
    with pytest.raises(TandemError) as caught:
        history.delete(entry(1).run)
    assert caught.value.code == "run-under-way"
    assert (tmp_path / entry(1).run / SUMMARY).is_file()


def test_an_interrupted_deletion_is_completed(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.put(entry(1))
    first.close()
    # The state if the process ends between the two: still listed, its folder set aside.
    (tmp_path / entry(1).run).replace(tmp_path / f"{DELETED}{entry(1).run}")
    second = opened(tmp_path)
    assert second.newest(5) == ()
    assert not list(tmp_path.glob(f"{DELETED}*"))
    assert second.problem is None
    second.close()


def test_a_folder_that_cannot_be_set_aside_keeps_its_run(
    tmp_path: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.put(entry(1))

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(TandemError) as caught:
        history.delete(entry(1).run)
    assert caught.value.code == "history-unusable"
    assert history.newest(5) == (entry(1),)
    assert (tmp_path / entry(1).run / SUMMARY).is_file()
