"""A sweep among the runs of the history."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.models.draft import RunDraft
from app.models.runs_model import Column, more
from app.views.past_sweep import PastSweep
from app.views.runs import RunsView
from core.sweep.kept import entry_of
from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, RunDetails, RunList
from core.vocabulary.commands import Command, GetRun, ListRuns
from core.vocabulary.ids import RunId
from core.vocabulary.sweep import Sweep
from tests.app import world
from tests.app.cli.test_sweep import BEGUN, SWEEP, finished
from tests.app.fake_core import FakeCore
from tests.app.views.test_runs import choose, made_view

ALONE = world.entry(1)
TRIAL = structs.replace(world.entry(2), sweep=SWEEP)


def ended(phase: str = "finished") -> Sweep:
    best = structs.replace(finished(2, 0.25), run=TRIAL.run)
    return structs.replace(BEGUN.having(finished(1, 0.5)).having(best), phase=phase)


def answer(command: Command) -> Answer:
    assert isinstance(command, GetRun)
    if command.run == RunId(SWEEP):
        return RunDetails(entry=entry_of(ended(), Path("/sweeps"), [TRIAL]), sweep=ended())
    return world.details(TRIAL, steps=4)


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> Iterator[RunsView]:
    line = entry_of(ended(), Path("/sweeps"), [TRIAL])
    core.answers = {ListRuns: RunList(runs=(TRIAL, ALONE), sweeps=(line,)), GetRun: answer}
    view = made_view(qtbot, bridge, core)
    yield view
    view.hide()


def opened(view: RunsView, core: FakeCore) -> PastSweep:
    choose(view, [view.sorted.entry(row).run for row in range(2)].index(RunId(SWEEP)))
    view.open.click()
    core.flush()
    assert view.swept is not None and view.pages.currentWidget() is view.swept
    return view.swept


def test_a_sweep_is_one_line_and_its_trials_come_when_they_are_asked_for(
    view: RunsView, core: FakeCore
) -> None:
    listed = {view.sorted.entry(row).run for row in range(view.sorted.rowCount())}
    assert listed == {ALONE.run, SWEEP}
    (line,) = (view.model.entry(row) for row in range(2) if view.model.entry(row).trials)
    assert more(line, Column.RUN) == "2 trials, the best: --lr 0.01"
    assert line.losses == TRIAL.losses
    choose(view, 0, 1)
    assert not view.compare.isEnabled(), "a sweep has no curve of its own"
    view.trials.click()
    core.flush()
    assert view.sorted.rowCount() == 3


def test_its_page_opens_again_and_leads_to_its_trials(qtbot: QtBot, view: RunsView, core: FakeCore) -> None:
    page = opened(view, core)
    assert page.card.isVisible() and not page.card.hides.isVisible()
    best = page.card.table.topLevelItem(0)
    assert best is not None and best.text(0) == "2"
    page.card.table.setCurrentItem(best)
    qtbot.keyClick(page.card.table, Qt.Key.Key_Return)
    core.flush()
    assert core.asked(GetRun)[-1] == GetRun(run=TRIAL.run)
    assert view.pages.currentWidget() is view.past
    page = opened(view, core)
    with qtbot.waitSignal(view.draft_asked) as asked:
        page.card.longer.click()
    (draft,) = asked.args
    assert isinstance(draft, RunDraft) and draft.arguments == "--lr 0.01"
    page.back.click()
    assert view.pages.currentWidget() is view.list


def test_a_sweep_that_goes_on_is_followed(view: RunsView, core: FakeCore) -> None:
    page = opened(view, core)
    assert not page.card.stop.isVisible()
    core.happen(ev.SweepChanged(sweep=ended("running")))
    core.flush()
    assert page.card.stop.isVisible()
    page.back.click()
    choose(view, [view.sorted.entry(row).run for row in range(2)].index(RunId(SWEEP)))
    assert not view.delete.isEnabled()
