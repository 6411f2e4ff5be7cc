"""*Take it to a cluster…*: the job of a run that this laptop started, and the command that starts it
there."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.widgets.cluster_export import ClusterExport
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.phases import Finished
from tests.core.cluster.laptops import RUN, plan_of

LIMIT_MS = 60_000


@pytest.fixture
def run(tmp_path: Path) -> RunDetails:
    script = tmp_path / "my project" / "train.py"
    script.parent.mkdir()
    script.write_text("import keras\n")
    entry = RunEntry(run=RUN, started_s=1.0, script="train.py", source=str(script), phase=Finished())
    return RunDetails(entry=entry, plan=plan_of())


@pytest.fixture
def card(qtbot: QtBot) -> ClusterExport:
    card = ClusterExport()
    qtbot.addWidget(card)
    qtbot.addWidget(card.button)
    return card


def test_the_menus_first_entry_writes_the_job_and_says_what_starts_it(
    qtbot: QtBot, card: ClusterExport, run: RunDetails, tmp_path: Path
) -> None:
    card.show_run(run)
    assert card.isHidden() and not card.button.isHidden()
    menu = card.button.menu()
    assert [action.text() for action in menu.actions()] == ["Slurm", "Kubernetes", "Ray"]
    menu.actions()[0].trigger()
    qtbot.waitUntil(lambda: not card.isHidden(), timeout=LIMIT_MS)
    job = tmp_path / "my project" / "train-slurm" / "job.sbatch"
    assert job.is_file()
    assert card.head.text() == "The job for Slurm is written."
    assert card.command.text().replace("\u200b", "").endswith(f"sbatch '{job.parent}'/job.sbatch")
    card._copy.click()
    assert QGuiApplication.clipboard().text() == f"sbatch '{job.parent}'/job.sbatch"


def test_a_job_that_is_there_already_is_left_alone_and_said(
    qtbot: QtBot, card: ClusterExport, run: RunDetails
) -> None:
    for _ in range(2):
        card.show_run(run)
        card.write("ray")
        qtbot.waitUntil(lambda: not card.isHidden(), timeout=LIMIT_MS)
    assert card.problem.problem is not None and card.problem.problem.code == "exists"
    assert card.head.isHidden(), "nothing was written this time"


def test_a_run_whose_script_lies_elsewhere_has_no_such_button(card: ClusterExport, run: RunDetails) -> None:
    card.show_run(replace(run, entry=replace(run.entry, source="")))
    assert card.button.isHidden()
    card.show_run(None)
    assert card.button.isHidden() and card.isHidden()


def test_what_was_written_of_another_run_is_not_said_of_this_one(
    qtbot: QtBot, card: ClusterExport, run: RunDetails, tmp_path: Path
) -> None:
    card.show_run(run)
    card.write("slurm")
    card.show_run(replace(run, log="another"))
    qtbot.waitUntil(lambda: (tmp_path / "my project" / "train-slurm" / "secret").is_file(), timeout=LIMIT_MS)
    qtbot.wait(200)
    assert card.isHidden()
