from __future__ import annotations

import csv
import errno
import json
from pathlib import Path

import pytest

from core.history.history import History
from core.history.read import read_run
from core.history.record import RunRecord
from core.report import write
from core.report.write import write_report
from core.vocabulary import events as ev
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Exit, Finished, Planning
from core.vocabulary.progress import LogLines, Summary
from tests.core.cluster.laptops import ANNA, BEN, plan_of
from tests.core.run.told import epochs_of, steps_of

PLAN = plan_of()
RUN = PLAN.run
FILES = {"history.csv", "history.json", "report.html"}


class Ended:
    """A run whose record is closed."""

    def __init__(self, folder: Path, *events: ev.MirroredEvent, outputs: tuple[str, ...] = ()) -> None:
        history = History(folder)
        history.open()
        self.troubles: list[Problem] = []
        entry = RunEntry(run=RUN, started_s=100.0, script="train.py", phase=Planning())
        self.record = RunRecord(folder / RUN, entry, ANNA, history, self.troubles.append)
        end = ev.MemberEnded(
            run=RUN, device=BEN, task="worker:0", exit=Exit(reason="finished", weights_sha256="cd" * 32)
        )
        for event in (*events, end, ev.RunSummarised(run=RUN, summary=Summary(outputs=outputs))):
            self.record.add(event)
        self.record.add(ev.RunPhaseChanged(run=RUN, phase=Finished()))
        self.record.close()
        history.close()

    def written(self) -> set[str]:
        return {path.name for path in self.record.folder.iterdir()} & FILES


def told() -> list[ev.MirroredEvent]:
    steps = [ev.MemberProgressed(run=RUN, device=ANNA, progress=step) for step in steps_of(40)]
    epochs = [ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch) for epoch in epochs_of(4)]
    return [ev.RunPlanned(plan=PLAN), *steps, *epochs]


def test_an_ended_run_leaves_its_history_and_its_page(tmp_path: Path) -> None:
    ended = Ended(tmp_path, *told())
    write_report(ended.record)
    folder = ended.record.folder
    assert ended.written() == FILES
    assert ended.troubles == []
    assert len(list(csv.reader((folder / "history.csv").read_text().splitlines()))) == 5
    assert len(json.loads((folder / "history.json").read_text())["members"][0]["epochs"]) == 4
    text = (folder / "report.html").read_text()
    assert "Ben&#x27;s" in text
    assert 'id="curves"' in text
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in FILES)
    assert read_run(ended.record.entry, folder).report == str(folder / "report.html")


def test_a_run_that_reported_nothing_has_a_page_without_curves(tmp_path: Path) -> None:
    ended = Ended(tmp_path, ev.RunPlanned(plan=PLAN))
    assert read_run(ended.record.entry, ended.record.folder).report == ""
    write_report(ended.record)
    assert ended.written() == FILES
    assert "The script reported no numbers." in (ended.record.folder / "report.html").read_text()


def test_a_folder_that_is_gone_gets_no_report(tmp_path: Path) -> None:
    ended = Ended(tmp_path, *told())
    ended.record.folder.rename(tmp_path / "elsewhere")
    write_report(ended.record)
    assert not ended.record.folder.exists()
    assert ended.troubles == []


def test_a_full_disk_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ended = Ended(tmp_path, *told())
    monkeypatch.setattr(write, "write_atomically", full)
    write_report(ended.record)
    write_report(ended.record)
    (trouble,) = ended.troubles
    assert "its report" in trouble.what
    assert "No space left" in trouble.what


def test_only_outputs_inside_the_runs_own_folder_can_be_opened(tmp_path: Path) -> None:
    names = ("model.keras", "../plan.json", str(tmp_path / "secret"), "javascript:alert(1)", "missing.txt")
    ended = Ended(tmp_path, *told(), outputs=names)
    outputs = ended.record.folder / "outputs"
    outputs.mkdir()
    (tmp_path / "secret").write_text("x")
    for name in ("model.keras", "javascript:alert(1)"):
        (outputs / name).write_text("x")
    write_report(ended.record)
    text = (ended.record.folder / "report.html").read_text()
    assert text.count("href=") == 1
    assert 'href="outputs/model.keras"' in text


def test_tandems_messages_during_the_run_are_in_its_report(tmp_path: Path) -> None:
    lines = LogLines(task="chief:0", stream="tandem", text="wombat is not <exact> (train.py, line 12).")
    ended = Ended(tmp_path, *told(), ev.MemberLogged(run=RUN, device=ANNA, lines=lines))
    write_report(ended.record)
    text = (ended.record.folder / "report.html").read_text()
    assert "wombat is not &lt;exact&gt; (train.py, line 12)." in text
