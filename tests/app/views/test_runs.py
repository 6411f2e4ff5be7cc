"""The history: list, details, comparison."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import shiboken6
from msgspec.structs import replace
from PySide6.QtCore import QItemSelectionModel, QPoint, QRect, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QTableView
from pytestqt.qtbot import QtBot

from app import theme
from app.bridge import Bridge
from app.models import runs_model
from app.models.run_comparison import Compared, Line, compared
from app.models.runs_model import MORE_ROLE, Column, kind, more, words
from app.theme import GAP
from app.views.runs import RunsView
from app.widgets.canvas import Illustration
from core.run import problems
from core.run.abilities import why_not
from core.vocabulary import events as ev
from core.vocabulary import units
from core.vocabulary.answers import (
    Answer,
    Done,
    ReceivedReport,
    Refused,
    RunAccepted,
    RunDetails,
    RunEntry,
    RunList,
)
from core.vocabulary.commands import (
    ChangeSettings,
    Command,
    DeleteReport,
    DeleteRun,
    FindCheckpoints,
    GetRun,
    LabelRun,
    ListRuns,
    SendReport,
    StartRun,
    StopRun,
)
from core.vocabulary.errors import REPORT_CAME, Problem
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished, Stopped, Stopping, Training
from core.vocabulary.plan import Moment, Role, RunSpec
from core.vocabulary.progress import Best
from core.vocabulary.settings import SettingsChange
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.core.fake_node import ME, OTHER

LIMIT_MS = 60_000
ENTRIES = tuple(world.entry(n) for n in range(4))


def details(command: Command) -> Answer:
    assert isinstance(command, GetRun)
    entry = next(entry for entry in ENTRIES if entry.run == command.run)
    return world.details(entry, shift=0.1 * ENTRIES.index(entry), steps=46)


def made_view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> RunsView:
    view = RunsView(bridge)
    qtbot.addWidget(view)
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    view.resize(1000, 800)
    view.show()
    core.flush()
    return view


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> Iterator[RunsView]:
    core.answers = {ListRuns: RunList(runs=ENTRIES), GetRun: details}
    view = made_view(qtbot, bridge, core)
    yield view
    view.hide()


def line(found: Compared, name: str) -> Line:
    return next(line for line in found.lines if line.name == name)


def choose(view: RunsView, *rows: int) -> None:
    view.table.clearSelection()
    for row in rows:
        view.table.selectionModel().select(
            view.sorted.index(row, 0),
            QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows,
        )


def tick(qtbot: QtBot, view: RunsView, row: int) -> None:
    """Click the check box of a run."""
    cell = view.table.visualRect(view.sorted.index(row, Column.RUN))
    at = QPoint(cell.left() + 16, cell.center().y())
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=at)


def test_two_quick_ticks_open_no_run(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    tick(qtbot, view, 0)
    cell = view.table.visualRect(view.sorted.index(0, Column.RUN))
    at = QPoint(cell.left() + 16, cell.center().y())
    qtbot.mouseDClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert not core.asked(GetRun)


def test_without_runs_it_says_what_will_be_here(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> None:
    core.answers[ListRuns] = RunList(runs=())
    view = made_view(qtbot, bridge, core)
    assert view.empty.isVisible()
    assert not view.table.isVisible()
    picture = view.instead.findChild(Illustration)
    assert picture is not None
    there = [
        QRect(each.mapTo(view.instead, QPoint()), each.size()) for each in (picture, view.empty, view.first)
    ]
    for above, below in pairwise(there):
        assert 0 <= below.top() - above.bottom() <= 2 * GAP, "they belong together"
    assert max(abs(each.center().x() - view.instead.rect().center().x()) for each in there) <= 1
    view.activateWindow()
    view.setFocus()
    qtbot.waitUntil(view.first.hasFocus, timeout=LIMIT_MS)
    with qtbot.waitSignal(view.train_asked):
        qtbot.keyClick(view.first, Qt.Key.Key_Return)
    core.answers[ListRuns] = RunList(runs=ENTRIES)
    core.happen(*world.begun())
    core.flush()
    assert not view.first.isVisible()
    assert view.table.hasFocus()
    view.hide()


def test_the_newest_is_on_top_and_headers_sort(view: RunsView) -> None:
    choose(view, 0)
    assert view.chosen == [ENTRIES[0]]
    view.table.sortByColumn(Column.DURATION, Qt.SortOrder.DescendingOrder)
    choose(view, 0)
    assert view.chosen == [ENTRIES[3]]


def test_enter_opens_a_run(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    view.table.setCurrentIndex(view.sorted.index(1, 0))
    qtbot.keyClick(view.table, Qt.Key.Key_Return)
    core.flush()
    assert view.pages.currentWidget() is view.past
    assert view.past.page.title.text().startswith("digits.py, ")
    assert view.past.charts.empty.text() == "Drawing…", "its points are read beside"
    assert view.past.log_text.toPlainText() == "", "made only where somebody looks"
    view.past.log.head.click()
    assert view.past.log_text.placeholderText() == "Reading the log…"
    qtbot.waitUntil(lambda: view.past.log_text.toPlainText().startswith("Epoch 1/8"), timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: view.past.charts.redraws > 0, timeout=LIMIT_MS)
    view.past.back.click()
    assert view.pages.currentIndex() == 0


def test_two_runs_are_compared(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    for row in (0, 1, 2):
        tick(qtbot, view, row)
    assert view.chosen == [ENTRIES[0], ENTRIES[1], ENTRIES[2]]
    tick(qtbot, view, 1)
    assert view.chosen == [ENTRIES[0], ENTRIES[2]], "a tick is taken back"
    assert view.compare.isEnabled()
    assert (view.compare.property("kind"), view.open.property("kind")) == ("primary", "")
    assert not view.open.isEnabled()
    view.compare.click()
    core.flush()
    assert view.past.page.title.text() == "2 runs compared"
    assert not view.past.outcome.isVisible()
    qtbot.waitUntil(lambda: view.past.charts.redraws > 0, timeout=LIMIT_MS)
    assert len(view.past.charts.plots[0].curves) == 4
    assert len({curve.colour for curve in view.past.charts.plots[0].curves}) == 2


def test_measured_runs_are_compared_by_what_they_gained() -> None:
    summary = replace(world.SUMMARY, expectation=world.EXPECTED, settled=world.SETTLED)
    found = compared([ENTRIES[0], replace(ENTRIES[0], summary=summary)])
    assert line(found, "Speed") == Line("Speed", ("590 samples/s", "753 samples/s"), frozenset({1})), (
        "without the first seconds where that is known"
    )
    assert line(found, "Speed compared with one laptop").values == ("", "1.2× one laptop")


def test_a_run_can_be_run_again_where_its_script_is_known(qtbot: QtBot, view: RunsView) -> None:
    choose(view, 1)
    with qtbot.waitSignal(view.again_asked) as asked:
        view.again.click()
    assert asked.args == [ENTRIES[1]]


def test_a_run_of_another_laptop_cannot(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> None:
    core.answers[ListRuns] = RunList(runs=(world.entry(source=""),))
    view = made_view(qtbot, bridge, core)
    choose(view, 0)
    assert not view.again.isEnabled()
    assert view.open.isEnabled()
    view.hide()


def test_a_corrupt_history_is_said_and_the_rest_is_shown(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    problem = Problem(code="history-incomplete", what="One summary is damaged.", fix="The rest is there.")
    core.answers[ListRuns] = RunList(runs=ENTRIES[:1], problem=problem)
    view = made_view(qtbot, bridge, core)
    assert view.problem.problem == problem
    assert view.problem.isVisible()
    assert view.table.isVisible()
    view.hide()


def test_a_run_that_cannot_be_read_says_why(core: FakeCore, view: RunsView) -> None:
    why = Problem(code="run-unreadable", what="The run's files are gone.", fix="Delete it.")
    core.answers[GetRun] = Refused(problem=why)
    choose(view, 0)
    view.open.click()
    core.flush()
    assert view.past.problem.problem == why
    assert view.past.problem.isVisible()
    assert not view.past.outcome.isVisible()


THEN = RunSpec(
    script="/home/ada/digits/digits.py",
    arguments=("--epochs", "8"),
    roles={ME: (Role.WORKER,), OTHER: (Role.CHIEF,)},
    shares={ME: 48, OTHER: 16},
    wire="bf16",
    seed=7,
)
"""Names no devices: whoever was connected took part."""
PAUSED = world.entry(last=Stopped(by="here"), spec=THEN, folder="/runs/paused")


def open_run(
    core: FakeCore, view: RunsView, entry: RunEntry, checkpoint: Moment | None = world.MOMENT
) -> None:
    core.answers[GetRun] = replace(world.details(entry, steps=46), checkpoint=checkpoint)
    choose(view, 0)
    view.open.click()
    core.flush()


def test_a_stopped_run_goes_on_with_the_laptops_roles_and_shares_of_then(
    qtbot: QtBot, core: FakeCore, view: RunsView
) -> None:
    core.happen(*world.linked())
    core.answers[StartRun] = RunAccepted(run=RunId("20261122-101010-00000000"))
    open_run(core, view, PAUSED)
    outcome = view.past.outcome
    assert outcome.go_on.isVisible()
    assert outcome.where.text() == "Resumes at epoch 4, step 120."
    assert outcome.go_on.accessibleName() == "Resume"
    assert outcome.go_on.accessibleDescription() == outcome.where.text()
    assert outcome.again.property("kind") == "", "one main deed"
    core.held = True
    view.activateWindow()
    outcome.go_on.setFocus()
    qtbot.waitUntil(outcome.go_on.hasFocus, timeout=LIMIT_MS)
    qtbot.keyClick(outcome.go_on, Qt.Key.Key_Return)
    qtbot.keyClick(outcome.go_on, Qt.Key.Key_Return)
    assert core.asked(StartRun) == [StartRun(spec=replace(THEN, devices=(OTHER,), resume=PAUSED.run))]
    assert outcome.where.text() == "Looking for the newest checkpoint…"
    with qtbot.waitSignal(view.resumed, timeout=LIMIT_MS):
        core.release()
        core.flush()


@pytest.mark.parametrize(
    ("entry", "checkpoint"),
    [
        (PAUSED, None),
        (ENTRIES[0], world.MOMENT),
    ],
    ids=["no checkpoint", "finished"],
)
def test_what_cannot_go_on_has_no_button(
    core: FakeCore, view: RunsView, entry: RunEntry, checkpoint: Moment | None
) -> None:
    open_run(core, view, entry, checkpoint)
    assert view.past.outcome.isVisible()
    assert not view.past.outcome.go_on.isVisible()
    assert not view.past.outcome.where.isVisible()
    assert view.past.outcome.again.property("kind") == "primary"


def test_what_another_laptop_started_goes_on_here_with_the_project_that_came_then(
    core: FakeCore, view: RunsView
) -> None:
    core.happen(*world.linked())
    open_run(core, view, replace(PAUSED, source="", spec=None), world.MOMENT)
    view.past.outcome.go_on.click()
    (asked,) = core.asked(StartRun)
    assert isinstance(asked, StartRun)
    assert (asked.spec.script, asked.spec.resume) == ("", PAUSED.run)
    assert asked.spec.arguments == PAUSED.arguments


def test_a_run_goes_on_with_a_checkpoint_that_lies_on_another_laptop(core: FakeCore, view: RunsView) -> None:
    core.happen(*world.linked())
    open_run(core, view, PAUSED, None)
    asked = FindCheckpoints(run=PAUSED.run)
    assert core.asked(FindCheckpoints) == [asked]
    outcome = view.past.outcome
    assert not outcome.go_on.isVisible()
    core.happen(world.found(RunId("another")))
    assert not outcome.go_on.isVisible()
    core.happen(world.found(PAUSED.run))
    assert outcome.go_on.isVisible()
    assert outcome.where.text() == "Resumes at epoch 4, step 120, with the checkpoint on Bob's laptop."
    assert outcome.go_on.accessibleDescription() == outcome.where.text()
    assert outcome.head.text() == "Stopped on here"
    core.happen(world.linked()[1])
    assert core.asked(FindCheckpoints) == [asked, asked]
    problem = Problem(code="checkpoint-lost", what="It was lost.", fix="Try again.")
    core.answers[StartRun] = Refused(problem=problem)
    core.held = True
    outcome.go_on.click()
    core.happen(world.came(12_000_000, PAUSED.run))
    assert outcome.where.text() == "Fetching the checkpoint from Bob's laptop: 12 MB of 70.5 MB."
    core.happen(world.found(PAUSED.run, Moment(step=1000, epoch=4)))
    assert outcome.where.text() == "Fetching the checkpoint from Bob's laptop: 12 MB of 70.5 MB."
    core.happen(ev.FetchEnded(run=PAUSED.run))
    assert outcome.where.text() == "Looking for the newest checkpoint…"
    core.release()
    core.flush()
    assert outcome.not_started.problem == problem
    assert outcome.where.text() == "Resumes at epoch 5, step 1, with the checkpoint on Bob's laptop."
    core.happen(world.lost())
    assert not outcome.go_on.isVisible(), "nobody can send it now"


def test_going_on_can_be_stopped_while_the_checkpoint_is_fetched(
    qtbot: QtBot, core: FakeCore, view: RunsView
) -> None:
    core.happen(*world.linked())
    open_run(core, view, PAUSED)
    outcome = view.past.outcome
    assert not outcome.stop.isVisible()
    core.answers[StartRun] = Refused(problem=problems.stopped_by("here"))
    core.held = True
    outcome.go_on.click()
    core.happen(world.came(12_000_000, PAUSED.run))
    view.activateWindow()
    outcome.stop.setFocus()
    qtbot.waitUntil(outcome.stop.hasFocus, timeout=LIMIT_MS)
    qtbot.keyClick(outcome.stop, Qt.Key.Key_Return)
    assert core.asked(StopRun) == [StopRun()]
    core.happen(ev.FetchEnded(run=PAUSED.run))
    core.release()
    core.flush()
    assert not outcome.stop.isVisible() and outcome.go_on.hasFocus()
    assert outcome.where.text() == "Resumes at epoch 4, step 120."
    assert outcome.not_started.problem is None, "it is what the user wanted"


def test_nobody_is_asked_for_checkpoints_of_what_cannot_go_on(core: FakeCore, view: RunsView) -> None:
    open_run(core, view, ENTRIES[0], None)
    core.happen(world.found(ENTRIES[0].run))
    assert not view.past.outcome.go_on.isVisible()
    view.show_list()
    choose(view, 0, 1)
    core.answers[GetRun] = details
    view.compare.click()
    core.flush()
    assert not core.asked(FindCheckpoints)


def test_a_refusal_to_go_on_is_said_until_another_run_is_opened(core: FakeCore, view: RunsView) -> None:
    problem = Problem(code="script-changed", what="digits.py is not as it was.", fix="Undo the change.")
    core.answers[StartRun] = Refused(problem=problem)
    core.happen(*world.linked())
    open_run(core, view, PAUSED)
    outcome = view.past.outcome
    outcome.go_on.click()
    core.flush()
    assert outcome.not_started.problem == problem
    assert outcome.not_started.isVisible()
    assert outcome.where.text() == "Resumes at epoch 4, step 120.", "it can be tried again"
    open_run(core, view, replace(PAUSED, run=RunId("another")))
    assert not outcome.not_started.isVisible()
    core.held = True
    outcome.go_on.click()
    core.held = False
    open_run(core, view, PAUSED)
    core.release()
    core.flush()
    assert not outcome.not_started.isVisible(), "it is about the run before"


def test_a_laptop_that_prevents_resuming_is_named_with_the_ways_to_do_without_it(
    core: FakeCore, view: RunsView
) -> None:
    core.happen(*world.linked(), world.lost())
    why = why_not(core.state.devices[OTHER])
    assert why is not None
    core.answers[StartRun] = Refused(problem=why.problem)
    open_run(core, view, PAUSED)
    outcome = view.past.outcome
    outcome.go_on.click()
    core.flush()
    assert outcome.alone.isVisible()
    told = outcome.not_started.problem
    assert told is not None and told.what.startswith("Bob's laptop is not connected")
    assert told.fix.startswith(why.fix)
    assert f"press “{outcome.alone.text()}”" in told.fix
    assert told.fix.endswith(f"tandem resume {PAUSED.run} --with NAME,…")


def test_a_laptop_that_is_not_paired_any_more_is_named(core: FakeCore, view: RunsView) -> None:
    open_run(core, view, PAUSED)
    view.past.outcome.go_on.click()
    problem = view.past.outcome.not_started.problem
    assert problem is not None
    assert problem.what == "Bob's laptop took part then but is no longer paired with this laptop."
    assert "press “Go on with this laptop alone”" in problem.fix
    assert not core.asked(StartRun)
    view.past.outcome.alone.click()
    (asked,) = core.asked(StartRun)
    assert isinstance(asked, StartRun)
    assert (asked.spec.solo, asked.spec.devices, asked.spec.resume) == (True, (), PAUSED.run)


def test_a_report_is_sent_to_a_connected_laptop_by_a_click(core: FakeCore, view: RunsView) -> None:
    open_run(core, view, replace(PAUSED, folder="/runs/1"))
    send = view.past.outcome.send
    assert not send.button.isVisible(), "nobody is connected"
    linked = world.linked(name="cleo & co")
    core.happen(*linked)
    open_run(core, view, replace(PAUSED, folder="/runs/1"))
    assert send.button.isVisible()
    (action,) = send.button.menu().actions()
    assert action.text() == "cleo && co"
    action.trigger()
    core.flush()
    assert core.asked(SendReport) == [SendReport(run=PAUSED.run, device=OTHER)]
    assert send.said.text() == "Sent to cleo & co."
    core.answers[SendReport] = Refused(problem=Problem(code="x", what="It is too large.", fix="Copy it."))
    action.trigger()
    core.flush()
    assert send.said.text() == "It is too large. Copy it."


def test_a_report_is_sent_from_the_list_too(core: FakeCore, qtbot: QtBot, bridge: Bridge) -> None:
    kept = replace(ENTRIES[0], folder="/runs/1")
    core.answers = {ListRuns: RunList(runs=(kept, ENTRIES[1])), GetRun: details}
    view = made_view(qtbot, bridge, core)
    choose(view, 0)
    assert not view.send.button.isVisible(), "nobody is connected"
    core.happen(*world.linked(name="cleo"))
    assert view.send.button.isVisible()
    choose(view, 1)
    assert not view.send.button.isVisible(), "it has no report"
    choose(view, 0)
    (action,) = view.send.button.menu().actions()
    action.trigger()
    core.flush()
    assert core.asked(SendReport) == [SendReport(run=kept.run, device=OTHER)]
    assert view.send.said.text() == "Sent to cleo."
    choose(view, 0, 1)
    assert not view.send.button.isVisible()
    view.hide()


def received(number: int, sender: str = "Ben's laptop") -> ReceivedReport:
    return ReceivedReport(
        path=f"/received/{number}.html", script=f"train{number}.py", sender=sender, came_s=1.7e9 + number
    )


def test_received_reports_stay_below_the_list_to_open_and_delete(
    qtbot: QtBot, bridge: Bridge, core: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[Path, str]] = []
    monkeypatch.setattr(
        "app.widgets.folder_box.FolderBox.open", lambda _, path, kind="folder": opened.append((path, kind))
    )
    core.answers[ListRuns] = RunList(runs=())
    view = made_view(qtbot, bridge, core)
    reports = view.received
    assert not reports.isVisible()
    core.answers[ListRuns] = RunList(runs=(), reports=(received(2), received(1)))
    core.happen(ev.NoticeRaised(problem=Problem(code=REPORT_CAME, what="Ben sent the report.", fix="")))
    core.flush()
    assert reports.isVisible() and "(2)" in reports.head.text()
    reports.head.click()
    item = reports.table.topLevelItem(0)
    assert item is not None and [item.text(at) for at in range(2)] == ["train2.py", "Ben's laptop"]
    assert reports.table.isVisible()
    qtbot.keyClick(reports.table, Qt.Key.Key_Return)
    assert opened == [(Path("/received/2.html"), "report")]
    qtbot.keyClick(reports.table, Qt.Key.Key_Delete)
    assert reports.table.topLevelItemCount() == 1 and not core.asked(DeleteReport)
    reports.undo.take_back()
    assert reports.table.topLevelItemCount() == 2
    reports.delete.click()
    reports.undo.finish()
    core.flush()
    assert core.asked(DeleteReport) == [DeleteReport(path="/received/2.html")]
    assert [each.path for each in reports.shown] == ["/received/1.html"]
    refusal = Problem(code="x", what="It could not be deleted.", fix="Look at the disk.")
    core.answers[DeleteReport] = Refused(problem=refusal)
    reports.delete.click()
    reports.undo.finish()
    core.flush()
    assert reports.problem.problem == refusal and len(reports.shown) == 1, "it is still there"
    core.answers[DeleteReport] = Done()
    reports.delete.click()
    reports.undo.finish()
    core.flush()
    assert not reports.isVisible()
    view.hide()


def test_the_history_says_what_a_run_went_on_with(core: FakeCore, view: RunsView) -> None:
    resumed = replace(ENTRIES[0], resumed=RunId("20261121-191204-9f3a01bc"))
    then = units.moment(datetime(2026, 11, 21, 19, 12, 4, tzinfo=UTC).timestamp())
    assert words(resumed, Column.STATE) == "Finished"
    assert more(resumed, Column.STATE) == f"resumed from {then}"
    assert line(compared([resumed, ENTRIES[1]]), "State").values[0] == f"Finished, resumed from {then}"
    assert more(replace(resumed, resumed=RunId("odd\n-id")), Column.STATE) == "resumed from odd -id"
    open_run(core, view, resumed)
    assert f"resumed from {then}" in view.past.about.text()


def test_the_run_under_way_is_shown_live(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    """Its record is still being written: there would be nothing to plot."""
    core.happen(*world.begun())
    core.answers[ListRuns] = RunList(
        runs=(replace(ENTRIES[0], run=world.RUN, phase=Training()), *ENTRIES[1:])
    )
    core.happen(world.phase(Stopping()))
    core.flush()
    choose(view, 0)
    assert view.chosen[0].run == world.RUN
    with qtbot.waitSignal(view.live_asked, timeout=60_000):
        view.open.click()
    assert not core.asked(GetRun)


def test_a_runs_start_is_the_same_on_every_laptop() -> None:
    """By each laptop's record the moments differed, and no continued run matched its predecessor."""
    here = replace(ENTRIES[0], run=RunId("20261121-191204-9f3a01bc"), started_s=0.0)
    there = replace(here, started_s=9e9)
    then = units.moment(datetime(2026, 11, 21, 19, 12, 4, tzinfo=UTC).timestamp())
    assert runs_model.started(here) == runs_model.started(there) == then
    assert words(here, Column.STARTED) == words(there, Column.STARTED)
    assert more(replace(here, resumed=here.run), Column.STATE).endswith(f" {then}")
    odd = replace(here, run=RunId("odd"), started_s=60.0)
    assert words(odd, Column.STARTED) == runs_model.started(odd) == units.moment(60.0)


def test_a_folder_that_is_gone_is_said(qtbot: QtBot, bridge: Bridge, core: FakeCore, tmp_path: Path) -> None:
    core.answers[ListRuns] = RunList(runs=(world.entry(folder=str(tmp_path / "gone")),))
    view = made_view(qtbot, bridge, core)
    choose(view, 0)
    view.folder.click()
    assert view.not_opened.problem is not None
    assert str(tmp_path / "gone") in view.not_opened.problem.fix
    view.hide()


def test_the_list_is_asked_for_when_a_run_ends_and_only_while_it_is_seen(
    core: FakeCore, view: RunsView
) -> None:
    assert len(core.asked(ListRuns)) == 1
    view.hide()
    core.happen(*world.linked(), *world.begun())
    core.happen(*world.finished())
    assert len(core.asked(ListRuns)) == 1
    view.show()
    assert len(core.asked(ListRuns)) == 2


def test_what_is_chosen_stays_chosen_when_the_list_grows(core: FakeCore, view: RunsView) -> None:
    choose(view, 2)
    core.answers[ListRuns] = RunList(runs=(world.entry(9), *ENTRIES))
    core.happen(*world.linked(), *world.begun()[:1])
    core.flush()
    assert view.chosen == [ENTRIES[2]]


def shown(view: RunsView) -> list[RunId]:
    return [view.sorted.entry(row).run for row in range(view.sorted.rowCount())]


NAMED = (
    replace(ENTRIES[0], name="Warm start", arguments=("--lr", "0.1")),
    replace(ENTRIES[1], note="half the rate"),
    replace(ENTRIES[2], phase=Stopped(by="Ben"), devices=("здесь",)),
    ENTRIES[3],
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("warm", [0]),
        ("--lr digits", [0]),
        ("HALF", [1]),
        ("stopped ben", [2]),
        ("ЗДЕСЬ", [2]),
        ("digits.py", [0, 1, 2, 3]),
        ("wombat", []),
        ("  ", [0, 1, 2, 3]),
    ],
)
def test_runs_are_filtered_by_words_of_any_column(
    qtbot: QtBot, core: FakeCore, view: RunsView, text: str, rows: list[int]
) -> None:
    core.answers[ListRuns] = RunList(runs=NAMED)
    core.happen(*world.linked(), *world.begun()[:1])
    core.flush()
    view.filter.setText(text)
    assert shown(view) == [NAMED[row].run for row in rows]
    assert view.count.isVisible() == bool(text.strip())
    assert not text.strip() or view.count.text() == f"{len(rows)} of 4"
    assert view.empty.isVisible() == (not rows)
    assert rows or view.empty.text() == "No run matches the filter."
    assert not view.first.isVisible(), "there are runs"
    view.filter.clear()
    assert len(shown(view)) == 4


def test_best_and_speed_sort_the_better_ones_to_the_top(core: FakeCore, view: RunsView) -> None:
    bests = (0.4, 0.1, 0.3, 0.2)
    entries = tuple(
        replace(
            entry,
            best={"val_loss": Best(value=best, epoch=2)},
            summary=replace(entry.summary, samples_s=100.0 * best),
        )
        for entry, best in zip(ENTRIES, bests, strict=True)
    )
    core.answers[ListRuns] = RunList(runs=entries)
    core.happen(*world.linked(), *world.begun()[:1])
    core.flush()
    view.table.sortByColumn(Column.BEST, Qt.SortOrder.AscendingOrder)
    assert shown(view) == [ENTRIES[place].run for place in (1, 3, 2, 0)]
    assert view.sorted.index(0, Column.BEST).data() == "0.1000"
    view.table.sortByColumn(Column.SPEED, Qt.SortOrder.DescendingOrder)
    assert shown(view) == [ENTRIES[place].run for place in (0, 2, 3, 1)]


def editor_of(view: RunsView) -> QLineEdit:
    editor = view.table.viewport().findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    return editor


def test_a_run_is_renamed_where_it_stands(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    view.activateWindow()
    view.table.setFocus()
    view.table.setCurrentIndex(view.sorted.index(1, Column.RUN))
    qtbot.keyClick(view.table, Qt.Key.Key_F2)
    editor = editor_of(view)
    assert editor.accessibleName() == "Name of this run"
    assert editor.text() == "", "the script's name is none of one's own"
    qtbot.keyClicks(editor, "Warm start")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    asked = [LabelRun(run=ENTRIES[1].run, name="Warm start", note=None)]
    qtbot.waitUntil(lambda: core.asked(LabelRun) == asked, timeout=LIMIT_MS)
    assert view.sorted.index(1, Column.RUN).data() == "Warm start"
    assert view.sorted.index(1, Column.RUN).data(MORE_ROLE) == "digits.py"
    assert view.pages.currentIndex() == 0, "Enter kept the name and opened nothing"
    qtbot.waitUntil(lambda: view.table.viewport().findChild(QLineEdit) is None, timeout=LIMIT_MS)
    view.rename.click()
    qtbot.keyClicks(editor_of(view), " no")
    qtbot.keyClick(editor_of(view), Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: view.table.viewport().findChild(QLineEdit) is None, timeout=LIMIT_MS)
    assert len(core.asked(LabelRun)) == 1
    assert view.sorted.index(1, Column.RUN).data() == "Warm start"


def test_a_note_is_written_from_the_menu(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    choose(view, 2)
    menu = view._menu()
    assert [action.text() for action in menu.actions()][-2:] == ["Edit note", "Delete"]
    menu.actions()[-2].trigger()
    qtbot.keyClicks(editor_of(view), "try  it again")
    qtbot.keyClick(editor_of(view), Qt.Key.Key_Return)
    asked = [LabelRun(run=ENTRIES[2].run, name=None, note="try it again")]
    qtbot.waitUntil(lambda: core.asked(LabelRun) == asked, timeout=LIMIT_MS)


def test_a_name_that_is_refused_is_said_and_the_old_one_comes_back(core: FakeCore, view: RunsView) -> None:
    why = Problem(code="history-unusable", what="The disk is full.", fix="Free some space.")
    core.answers[LabelRun] = Refused(problem=why)
    view.model.setData(view.model.index(0, Column.RUN), "Warm start")
    assert view.model.entry(0).name == "Warm start"
    core.flush()  # the refusal
    core.flush()  # what is kept
    assert view.model.entry(0).name == ""
    assert view.problem.problem == why


def test_a_deleted_run_comes_back_by_undo(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    view.activateWindow()
    choose(view, 1)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    assert shown(view) == [ENTRIES[place].run for place in (0, 2, 3)]
    assert view.undo.isVisible()
    assert view.undo.words.text().startswith("“digits.py” of ")
    assert "model" in view.undo.words.text()
    assert view.undo.undo.accessibleDescription() == view.undo.words.text()
    assert view.chosen == [ENTRIES[2]], "the next one"
    qtbot.keyClick(view.undo.undo, Qt.Key.Key_Return)
    assert len(shown(view)) == 4
    assert not view.undo.isVisible()
    assert not core.asked(DeleteRun)
    choose(view, 1)
    view.delete.click()
    qtbot.keyClick(view.table, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert len(shown(view)) == 4 and not core.asked(DeleteRun)


def test_runs_are_deleted_for_good_when_nobody_takes_it_back(
    qtbot: QtBot, core: FakeCore, view: RunsView
) -> None:
    view.undo.undo_ms = 30
    choose(view, 0, 2)
    view.delete.click()
    assert view.undo.words.text().startswith("2 runs deleted.")
    core.answers[ListRuns] = RunList(runs=(ENTRIES[1], ENTRIES[3]))
    wanted = [DeleteRun(run=run) for run in sorted((ENTRIES[0].run, ENTRIES[2].run))]
    qtbot.waitUntil(lambda: core.asked(DeleteRun) == wanted, timeout=LIMIT_MS)
    assert shown(view) == [ENTRIES[1].run, ENTRIES[3].run], "also until the list comes"
    core.happen(*(ev.HistoryChanged(run=command.run) for command in wanted))
    core.flush()
    assert shown(view) == [ENTRIES[1].run, ENTRIES[3].run]
    assert view.sorted.hidden == frozenset()


@pytest.mark.parametrize("thinks_better", [True, False])
def test_another_deletion_gives_the_one_before_more_time(
    core: FakeCore, view: RunsView, thinks_better: bool
) -> None:
    for _ in range(2):
        choose(view, 0)
        view.delete.click()
    assert core.asked(DeleteRun) == []
    assert "2 runs" in view.undo.words.text()
    if thinks_better:
        view.undo.take_back()
        assert shown(view) == [entry.run for entry in ENTRIES]
    else:
        view.undo.finish()
        gone = sorted(entry.run for entry in ENTRIES[:2])
        assert core.asked(DeleteRun) == [DeleteRun(run=run) for run in gone]


def test_a_window_that_is_closed_before_the_time_is_up_deletes_nothing(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    core.answers = {ListRuns: RunList(runs=ENTRIES)}
    view = RunsView(bridge)
    connection = bridge.changed.connect(lambda events, state: view.show_state(state, events))
    view.show()
    view.showEvent(QShowEvent())
    core.flush()
    view.undo.undo_ms = 50
    choose(view, 0)
    view.delete.click()
    assert view.undo.pending
    bridge.changed.disconnect(connection)
    view.close()
    shiboken6.delete(view)
    qtbot.wait(150)
    assert not core.asked(DeleteRun)


def test_a_run_that_cannot_be_deleted_comes_back_and_says_why(core: FakeCore, view: RunsView) -> None:
    why = Problem(code="run-resumed", what="The run under way resumes this one.", fix="Wait for its end.")
    core.answers[DeleteRun] = Refused(problem=why)
    choose(view, 1)
    view.delete.click()
    view.undo.finish()
    core.flush()  # the refusal
    core.flush()  # what is kept
    assert len(shown(view)) == 4
    assert view.problem.problem == why


def test_the_run_under_way_is_not_deleted(core: FakeCore, view: RunsView) -> None:
    core.happen(*world.begun())
    core.answers[ListRuns] = RunList(
        runs=(replace(ENTRIES[0], run=world.RUN, phase=Training()), *ENTRIES[1:])
    )
    core.happen(world.phase(Stopping()))
    core.flush()
    choose(view, 0)
    assert not view.delete.isEnabled() and not view.report.isEnabled()
    view.table.delete_asked.emit()
    assert not view.undo.isVisible()
    choose(view, 1)
    assert view.delete.isEnabled()


def test_it_is_seen_at_a_glance_which_of_two_runs_was_better(
    qtbot: QtBot, core: FakeCore, view: RunsView
) -> None:
    def with_rate(command: Command) -> Answer:
        found = details(command)
        assert isinstance(found, RunDetails)
        day = found.entry.run[6:8]
        entry = replace(
            found.entry,
            name=f"rate {day}",
            best={"val_loss": Best(value=float(day), epoch=3)},
            arguments=("--lr", day, "--epochs", "8"),
        )
        return replace(found, entry=entry)

    core.answers[GetRun] = with_rate
    choose(view, 0, 1, 2)
    view.compare.click()
    core.flush()
    past = view.past
    days = sorted(entry.run[6:8] for entry in ENTRIES[:3])
    assert past.page.title.text() == "3 runs compared"
    assert past.comparison.verdict.text().startswith(f"“rate {days[0]}” was the best of 3: val_loss ")
    cells = [[cell.text() for cell in line] for line in past.comparison.cells]
    assert cells[0] == [f"{float(day):.4f}" + (" · best" if day == days[0] else "") for day in days]
    assert days in cells, "the argument in which they differ"
    assert "--epochs 8" in past.comparison.same.text()
    assert past.comparison.cells[0][0].accessibleName().startswith(f"Best val_loss of rate {days[0]}: ")
    qtbot.waitUntil(lambda: past.charts.redraws > 0, timeout=LIMIT_MS)
    assert len({plot.range for plot in past.charts.all_plots}) == 1, "one axis"
    colours = dict.fromkeys(curve.colour for curve in past.charts.plots[0].curves)
    assert list(colours) == [theme.run_colour(place) for place in range(3)], "as in the table's head"
    assert past.charts.legend.names == [*(f"rate {day}" for day in days), "validation"]


def test_where_there_is_little_room_columns_give_way_to_the_names(view: RunsView) -> None:
    def hidden(width: int) -> list[Column]:
        view.resize(width, 700)
        view.grab()
        return [column for column in Column if view.table.isColumnHidden(column)]

    small = hidden(820)  # what the navigation leaves of a thousand pixels
    assert {Column.SPEED, Column.NOTE} <= set(small) <= {Column.SPEED, Column.DURATION, Column.NOTE}
    assert hidden(1150) == [Column.NOTE], "which nobody wrote"


def test_each_run_is_shown_from_its_top(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    view.resize(1000, 400)
    open_run(core, view, ENTRIES[0])
    bar = view.past.page.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0, timeout=LIMIT_MS)
    bar.setValue(bar.maximum())
    assert bar.value() > 0
    view.show_list()
    core.answers[GetRun] = details
    choose(view, 0, 1)
    view.compare.click()
    core.flush()
    assert view.past.page.title.text() == "2 runs compared"
    assert bar.value() == 0


def test_name_and_note_of_an_open_run_are_edited_where_they_stand(
    qtbot: QtBot, core: FakeCore, view: RunsView
) -> None:
    open_run(core, view, ENTRIES[0])
    past = view.past
    view.activateWindow()
    qtbot.waitUntil(past.back.hasFocus, timeout=LIMIT_MS)
    past.rename.click()
    assert past.name.hasFocus() and not past.page.title.isVisible()
    qtbot.keyClicks(past.name, "Warm start")
    qtbot.keyClick(past.name, Qt.Key.Key_Return)
    assert past.page.title.text() == "Warm start" and past.page.title.isVisible()
    assert past.rename.hasFocus(), "the keyboard stays where it was"
    assert past.annotate.text() == "Add a note"
    past.annotate.click()
    qtbot.keyClicks(past.note, "half the rate")
    qtbot.keyClick(past.note, Qt.Key.Key_Tab)
    assert past.noted.text() == "half the rate", "whoever goes on has written it"
    assert past.annotate.text() == past.annotate.accessibleName() == "Edit note"
    past.annotate.click()
    qtbot.keyClicks(past.note, "nothing")
    qtbot.keyClick(past.note, Qt.Key.Key_Escape)
    assert past.noted.text() == "half the rate"
    run = ENTRIES[0].run
    assert core.asked(LabelRun) == [
        LabelRun(run=run, name="Warm start", note=None),
        LabelRun(run=run, name=None, note="half the rate"),
    ]


def test_every_control_of_the_past_has_a_name_for_readers(core: FakeCore, view: RunsView) -> None:
    choose(view, 0)
    view.delete.click()
    open_run(core, view, NAMED[0])
    fields = (QAbstractButton, QLineEdit, QTableView)
    found = [
        widget
        for kind in fields
        for widget in view.findChildren(kind)
        if widget.objectName() or kind != fields[0]
    ]
    nameless = [
        widget
        for widget in found
        if not widget.accessibleName() and widget.objectName() != "qt_tableview_cornerbutton"  # never seen
    ]
    assert nameless == []
    index = view.sorted.index(0, Column.BEST)
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "0.1023, val_loss, at the end"


@pytest.mark.parametrize("name", ["数字の訓練 " * 20, "تدريب " * 20, "x" * 120])
def test_long_and_foreign_names_leave_the_window_its_width_at_twice_the_text(
    qtbot: QtBot, bridge: Bridge, core: FakeCore, qapp: QApplication, name: str
) -> None:
    before = qapp.font()
    font = qapp.font()
    font.setPointSizeF(2 * before.pointSizeF())
    qapp.setFont(font)
    try:
        entries = tuple(replace(entry, name=name, note=name) for entry in ENTRIES)
        core.answers = {ListRuns: RunList(runs=entries), GetRun: details}
        view = made_view(qtbot, bridge, core)
        choose(view, 0)
        assert view.list.minimumSizeHint().width() <= 1000
        buttons = [
            each for each in view.list.findChildren(QAbstractButton) if each.objectName().startswith("run-")
        ]
        assert len(buttons) == 3
        assert all(each.width() >= each.sizeHint().width() for each in buttons), "no word is cut off"
        assert view.delete.geometry().bottom() <= view.list.height()
        assert view.table.horizontalScrollBar().maximum() == 0, "nothing is out of sight"
        open_run(core, view, entries[0])
        choose(view, 0, 1, 2)
        view.compare.click()
        core.flush()
        view.grab()
        assert view.minimumSizeHint().width() <= 1000
        view.hide()
    finally:
        qapp.setFont(before)


def test_a_run_that_differs_from_one_machine_is_not_green_until_that_is_accepted(
    qtbot: QtBot, core: FakeCore, view: RunsView
) -> None:
    core.happen(*world.begun())
    summary = replace(world.SUMMARY, told=("The metric 'rmse' is of the batch as a whole.",))
    entry = world.entry(last=Finished(), folder="/runs/differs")
    entry = replace(entry, summary=summary)
    details = world.details(entry, steps=46)
    assert details.plan is not None
    core.answers[GetRun] = replace(details, plan=replace(details.plan, code="c" * 64))
    choose(view, 0)
    view.open.click()
    core.flush()
    outcome = view.past.outcome
    assert outcome.head.text() == "Finished, but not with the result of one machine"
    assert outcome.head.property("kind") == "warning-heading"
    assert "'rmse'" in outcome.result.text(), "not folded away"
    outcome.accept.click()
    assert core.asked(ChangeSettings) == [ChangeSettings(change=SettingsChange(accepted=("c" * 64,)))]
    assert kind(entry) == "warning" and kind(replace(entry, summary=world.SUMMARY)) == "good"


def test_runs_of_the_same_minute_are_told_apart(qtbot: QtBot, core: FakeCore, view: RunsView) -> None:
    def at_once(command: Command) -> Answer:
        found = details(command)
        assert isinstance(found, RunDetails)
        same_minute = RunId(f"20261121-1912{found.entry.run[13:]}")
        return replace(found, entry=replace(found.entry, script="train.py", run=same_minute))

    core.answers[GetRun] = at_once
    choose(view, 0, 2)
    view.compare.click()
    core.flush()
    qtbot.waitUntil(lambda: view.past.charts.redraws > 0, timeout=LIMIT_MS)
    assert [name.rpartition(" ")[2] for name in view.past.charts.legend.names] == ["(1)", "(2)", "validation"]
    names = [curve.name.partition(" (")[2] for curve in view.past.charts.plots[0].curves]
    assert names == ["1), training", "1), validation", "2), training", "2), validation"]


def test_a_report_that_is_gone_is_said(core: FakeCore, view: RunsView, tmp_path: Path) -> None:
    core.answers[GetRun] = world.details(replace(ENTRIES[0], folder=str(tmp_path)))
    choose(view, 0)
    view.open.click()
    core.flush()
    view.past.outcome.report.click()
    problem = view.past.outcome.not_opened.problem
    assert problem is not None and problem.what == "There is no such report any more."
    assert str(tmp_path / "report.html") in problem.fix
