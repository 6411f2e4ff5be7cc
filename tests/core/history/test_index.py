from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.history.index import FILE, MOST_NAMED, SCHEMA, History
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


def test_the_newest_come_first_and_the_newest_of_a_run_counts(history: History) -> None:
    for number in range(5):
        history.put(entry(number, Training()))
        history.put(entry(number))
    assert history.newest(3) == (entry(4), entry(3), entry(2))
    assert history.newest(0) == ()
    assert history.newest(-(2**80)) == ()
    assert history.newest(2**80) == history.newest(5)


def test_it_outlives_the_node(tmp_path: Path) -> None:
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
    keep_folder(tmp_path, under_way)
    first.close()
    second = opened(tmp_path)
    (kept,) = second.newest(5)
    assert isinstance(kept.phase, Failed)
    assert "ended while this run was under way" in kept.phase.problem.what
    assert wire.from_json((tmp_path / kept.run / SUMMARY).read_bytes(), RunEntry) == kept
    second.close()


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be read as one" * 40, b"\x00" * 8192]
)
def test_a_broken_index_is_kept_aside_and_made_anew_from_the_folders(tmp_path: Path, content: bytes) -> None:
    for number in (1, 2):
        keep_folder(tmp_path, entry(number))
    (tmp_path / "20260101-000000-00000000").mkdir()  # a folder without a summary
    (tmp_path / FILE).write_bytes(content)
    history = opened(tmp_path)
    assert history.newest(5) == (entry(2), entry(1))
    assert history.problem is not None
    assert history.problem.code == "history-rebuilt"
    assert (tmp_path / f"{FILE}.broken-1").read_bytes() == content
    history.close()


@pytest.mark.parametrize("content", [None, b"", b"\x00"])
def test_an_index_that_is_gone_or_empty_is_filled_from_the_folders(
    tmp_path: Path, content: bytes | None
) -> None:
    keep_folder(tmp_path, entry(1))
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    history = opened(tmp_path)
    assert history.newest(5) == (entry(1),)
    history.close()


def test_an_index_of_a_later_tandem_is_not_written_into(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as index:
        index.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    index.close()
    history = opened(tmp_path)
    assert history.problem is not None
    assert (tmp_path / f"{FILE}.broken-1").exists()
    history.close()


def test_an_index_that_breaks_while_it_is_used_is_made_anew(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.put(entry(1))
    keep_folder(tmp_path, entry(1))
    assert history._index is not None
    history._index.execute("UPDATE runs SET entry = 'garbage'")
    history._index.commit()
    assert history.newest(5) == (entry(1),)
    assert history.problem is not None
    history.close()


def test_a_run_whose_summary_is_damaged_is_named_and_its_folder_left_alone(tmp_path: Path) -> None:
    for number in (1, 2):
        keep_folder(tmp_path, entry(number))
    damaged = tmp_path / entry(1).run / SUMMARY
    damaged.write_bytes(b'{"run": "2026')
    (tmp_path / FILE).write_bytes(b"\x00" * 8192)
    history = opened(tmp_path)
    assert history.newest(5) == (entry(2),)
    assert history.problem is not None
    assert "Of one run summary.json is damaged" in history.problem.what
    assert damaged.parent.name in history.problem.fix
    assert "Nothing has to be done" not in history.problem.fix
    assert damaged.read_bytes() == b'{"run": "2026'
    history.close()


def test_a_run_that_the_index_lacks_comes_from_its_folder(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.put(entry(1))
    history.close()
    keep_folder(tmp_path, entry(2))
    history = opened(tmp_path)
    assert history.newest(5) == (entry(2), entry(1))
    assert history.problem is None
    history.close()


def test_a_run_that_has_ended_says_its_folder_is_not_cut_off(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.put(entry(1, Training()))
    history.close()
    keep_folder(tmp_path, entry(1))
    history = opened(tmp_path)
    assert history.newest(5) == (entry(1),)
    history.close()


def test_what_the_disk_refused_is_kept_once_there_is_room(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.put(entry(1))
    assert history._index is not None
    history._index.execute("PRAGMA max_page_count = 1")
    large = replace(entry(2), arguments=("x" * 100_000,))
    with pytest.raises(OSError, match="full"):
        history.put(large)
    assert history.newest(5) == (entry(1),)
    history._index.execute("PRAGMA max_page_count = 1000")
    assert history.newest(5) == (large, entry(1))
    history.close()


def test_an_index_that_only_the_disk_refuses_is_not_taken_for_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(tmp_path)
    first.put(entry(1))
    first.close()

    def refused(*arguments: object, **named: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as full:
        full.setattr(sqlite3, "connect", refused)
        history = opened(tmp_path)
        problem = history.problem
        assert problem is not None and "disk is full" in problem.what
        history.put(entry(2, Training()))
        keep_folder(tmp_path, entry(2, Training()))
        with pytest.raises(TandemError):
            history.newest(5)
    # With room again the next look finds everything; what is under way now is not taken for cut off.
    assert history.newest(5) == (entry(2, Training()), entry(1))
    assert history.problem is None
    assert not list(tmp_path.glob(f"{FILE}.broken-*"))
    history.close()
    with pytest.raises(TandemError):
        history.newest(5)


def test_a_folder_that_is_no_folder_is_said_and_reading_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    history = opened(tmp_path / "runs")
    assert history.problem is not None
    assert history.problem.code == "history-unusable"
    history.put(entry(1))  # a run goes on without it
    with pytest.raises(TandemError) as caught:
        history.newest(5)
    assert caught.value.code == "history-unusable"


@pytest.mark.parametrize(("count", "words"), [(1, "Of one run"), (2, "Of 2 runs"), (30, "Of 30 runs")])
def test_how_many_runs_are_damaged_is_said_and_some_are_named(tmp_path: Path, count: int, words: str) -> None:
    for number in range(count):
        keep_folder(tmp_path, entry(number))
        (tmp_path / entry(number).run / SUMMARY).write_bytes(b"{")
    history = opened(tmp_path)
    problem = history.problem
    history.close()
    assert problem is not None and problem.code == "history-incomplete"
    assert problem.what.startswith(words)
    assert problem.what.endswith("the list lacks it." if count == 1 else "the list lacks them.")
    named = problem.fix.count("20261121-")
    assert named == min(count, MOST_NAMED)
    assert problem.fix.endswith(" ….") == (count > MOST_NAMED)


def test_the_whole_id_of_a_run_finds_it_though_another_begins_so(history: History) -> None:
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


def test_every_broken_index_is_kept(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / FILE).write_bytes(b"not a database at all, but long enough to be looked at" * number)
        history = opened(tmp_path)
        assert history.problem is not None and history.problem.code == "history-rebuilt"
        history.close()
        assert (tmp_path / f"{FILE}.broken-{number}").exists()


def test_a_run_is_named_and_annotated_in_its_folder_too(tmp_path: Path) -> None:
    history = opened(tmp_path)
    history.put(entry(1))
    keep_folder(tmp_path, entry(1))
    history.label(entry(1).run, " Warm start ", None)
    kept = history.label(entry(1).run, None, "half the learning rate")
    assert (kept.name, kept.note) == ("Warm start", "half the learning rate")
    history.close()
    (tmp_path / FILE).unlink()
    again = opened(tmp_path)
    assert again.newest(5) == (kept,), "an index that is lost takes no name along"
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
        keep_folder(tmp_path, entry(number))
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
    keep_folder(tmp_path, entry(1, Training()))
    with pytest.raises(TandemError) as caught:
        history.delete(entry(1).run)
    assert caught.value.code == "run-under-way"
    assert (tmp_path / entry(1).run / SUMMARY).is_file()


def test_a_deletion_that_was_cut_off_is_brought_to_its_end(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.put(entry(1))
    keep_folder(tmp_path, entry(1))
    first.close()
    # As it stands where the process ends between the two: still listed, its folder set aside.
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
    keep_folder(tmp_path, entry(1))

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(TandemError) as caught:
        history.delete(entry(1).run)
    assert caught.value.code == "history-unusable"
    assert history.newest(5) == (entry(1),)
    assert (tmp_path / entry(1).run / SUMMARY).is_file()
