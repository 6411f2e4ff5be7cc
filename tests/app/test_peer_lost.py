"""A peer is lost while a screen is in front: the screen reports it, and nothing is lost."""

import pytest
from PySide6.QtCore import QByteArray, QMimeData, QPointF, Qt
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

from app.models.runs_model import Column
from app.views.runs import RunsView
from app.views.settings import SettingsView
from app.views.train import TrainView
from app.widgets.navigation import DEVICES, MACHINES, RUNS, SETTINGS, TRAIN
from app.widgets.role_row import MIME
from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, RunList
from core.vocabulary.commands import AnalyseScript, AnswerConsent, Command, ListRuns, PlanRun
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Failed, Finished, Training
from tests.app import laptops, world
from tests.app.fake_opening import FakeOpening
from tests.app.laptops import BEN
from tests.app.seat import LIMIT_MS, Seat
from tests.core.fake_node import ME, OTHER, FakeNode

WHY = world.lost().problem
FAILED = Problem(code="device-lost", what="Bob's laptop was lost in the run.", fix="Wake it, press Train.")


class AnsweringNode(FakeNode):
    """Knows one script and a history of one run, which ends like the present one."""

    async def submit(self, command: Command) -> Answer:
        answer = await super().submit(command)
        match command:
            case AnalyseScript():
                return world.script_read()
            case PlanRun():
                return world.planned(command)
            case ListRuns():
                run = self.state.run
                last = run.phase if run is not None else Finished()
                return RunList(runs=(world.entry(last=last), world.entry(1)))
        return answer


@pytest.fixture
def opening(opening: FakeOpening) -> FakeOpening:
    node = AnsweringNode()
    node.state = opening.node.state
    opening.node = node
    return opening


def test_while_a_run_is_put_together_it_is_left_out_and_what_was_chosen_comes_back_with_it(
    seat: Seat,
) -> None:
    train = seat.view(TRAIN, TrainView)
    seat.happen(*world.linked())
    train.choose("/home/ada/digits/digits.py")
    setup = train.setup
    seat.qtbot.waitUntil(lambda: setup.made is not None, timeout=LIMIT_MS)
    setup.arguments.setFocus()
    seat.qtbot.keyClicks(setup.arguments, "--epochs 3")
    setup.roles.swap.click()
    seat.qtbot.waitUntil(lambda: chief_of(train) == OTHER, timeout=LIMIT_MS)
    seat.happen(world.lost())
    seat.qtbot.waitUntil(lambda: setup.made is not None and setup.made.plan.solo, timeout=LIMIT_MS)
    said = [finding for finding in setup._shown if finding.code == "not-connected"]
    assert said and said[0].what.startswith("Bob's laptop is not connected, so this run goes without it")
    assert said[0].fix == WHY.fix and not setup.roles.rows[OTHER].role.isEnabled()
    assert setup.train.text() == "Train"
    assert setup.arguments.text() == "--epochs 3"
    seat.happen(*world.linked())
    seat.qtbot.waitUntil(lambda: chief_of(train) == OTHER, timeout=LIMIT_MS)
    assert setup.train.text() == "Train on 2 laptops"
    assert setup.arguments.text() == "--epochs 3"


def test_a_row_that_is_dragged_while_its_laptop_is_lost_changes_nothing(seat: Seat) -> None:
    train = seat.view(TRAIN, TrainView)
    seat.happen(*world.linked())
    train.choose("/home/ada/digits/digits.py")
    seat.qtbot.waitUntil(lambda: chief_of(train) == ME, timeout=LIMIT_MS)
    roles = train.setup.roles
    data = QMimeData()
    data.setData(MIME, QByteArray(OTHER.encode()))
    seat.happen(world.lost())
    before = train.setup.draft
    drop(roles.rows[ME], data)
    assert train.setup.draft == before
    seat.happen(*world.linked(), ev.LinkDown(device=OTHER, problem=WHY), ev.DeviceForgotten(device=OTHER))
    assert OTHER not in roles.rows
    drop(roles.rows[ME], data)
    assert train.setup.draft == before
    assert roles.rows[ME].property("chosen") != "true"


def test_while_it_trains_the_reason_stands_there_and_the_curves_stay(seat: Seat) -> None:
    train = seat.view(TRAIN, TrainView)
    seat.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(3)))
    seat.qtbot.waitUntil(train.live.isVisible, timeout=LIMIT_MS)
    curves = set(train.live.points.curves)
    assert curves
    seat.happen(world.lost(), *world.finished(last=Failed(problem=FAILED)))
    seat.qtbot.waitUntil(train.live.outcome.problem.isVisible, timeout=LIMIT_MS)
    assert train.live.outcome.problem.problem == FAILED
    assert curves <= set(train.live.points.curves)
    assert seat.notices == [], "it is not said twice"


def test_on_runs_the_run_has_failed_and_the_choice_and_order_stay(seat: Seat) -> None:
    seat.happen(*world.linked(), *world.begun())
    runs = seat.view(RUNS, RunsView)
    seat.qtbot.waitUntil(lambda: runs.model.rowCount() == 2, timeout=LIMIT_MS)
    assert isinstance(runs.model.entry(0).phase, Training)
    runs.table.sortByColumn(Column.DURATION, Qt.SortOrder.AscendingOrder)
    runs.table.selectRow(1)
    chosen = [entry.run for entry in runs.chosen]
    seat.happen(world.lost(), *world.finished(last=Failed(problem=FAILED)))
    seat.qtbot.waitUntil(lambda: isinstance(runs.model.entry(0).phase, Failed), timeout=LIMIT_MS)
    shown = runs.model.index(0, Column.STATE)
    assert shown.data() == "Failed"
    assert FAILED.fix in shown.data(Qt.ItemDataRole.ToolTipRole)
    assert [entry.run for entry in runs.chosen] == chosen
    assert runs.table.horizontalHeader().sortIndicatorSection() == Column.DURATION
    assert seat.notices == [f"The run of digits.py failed: {FAILED}"]
    seat.window.go_to(TRAIN)
    assert seat.notices == [], "there it is said at length"


@pytest.mark.parametrize("screen", [DEVICES, TRAIN, MACHINES, RUNS, SETTINGS])
def test_a_question_whose_asker_is_lost_goes_and_says_why(seat: Seat, screen: int) -> None:
    seat.window.go_to(screen)
    seat.happen(laptops.paired(), laptops.linked(), laptops.consent_asked())
    sheet = seat.conductor.consent
    assert sheet.is_open
    down = ev.LinkDown(device=BEN, problem=WHY)
    seat.happen(down, ev.ConsentSettled(run=laptops.RUN, allowed=False))
    assert not seat.conductor.consent.is_open
    assert seat.notices == [
        f"ben was lost while it asked to train here. Nothing of it ran on this laptop. {WHY.fix}"
    ]
    assert seat.window.current == screen
    assert not [each for each in seat.opening.node.commands if isinstance(each, AnswerConsent)]


def test_a_question_that_was_answered_here_goes_without_a_word(seat: Seat) -> None:
    seat.happen(laptops.paired(), laptops.linked(), laptops.consent_asked())
    seat.qtbot.waitUntil(seat.conductor.consent.no.isEnabled, timeout=LIMIT_MS)
    seat.conductor.consent.no.click()
    seat.happen(ev.ConsentSettled(run=laptops.RUN, allowed=False))
    assert not seat.conductor.consent.is_open
    assert seat.notices == []


def test_a_question_that_is_taken_back_is_said(seat: Seat) -> None:
    seat.happen(laptops.paired(), laptops.linked(), laptops.consent_asked())
    seat.happen(ev.ConsentSettled(run=laptops.RUN, allowed=False))
    assert len(seat.notices) == 1
    assert seat.notices[0].startswith("ben no longer asks to train here")


def chief_of(train: TrainView) -> object:
    made = train.setup.made
    return made.plan.chief.device if made is not None else None


def drop(onto: QWidget, data: QMimeData) -> None:
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.MoveAction, data, buttons, keys)
    onto.dropEvent(event)


def test_on_settings_a_name_being_typed_stays(seat: Seat) -> None:
    seat.happen(*world.linked(), *world.begun())
    settings = seat.view(SETTINGS, SettingsView)
    settings.laptop.name.setFocus()
    settings.laptop.name.setText("half a na")
    settings.network.port.setValue(27777)
    seat.happen(world.lost(), *world.finished(last=Failed(problem=FAILED)))
    assert settings.laptop.name.text() == "half a na"
    assert settings.network.port.value() == 27777
    assert seat.notices == [f"The run of digits.py failed: {FAILED}"]


@pytest.mark.parametrize("screen", [DEVICES, TRAIN, MACHINES, RUNS, SETTINGS])
def test_a_pairing_that_breaks_says_so_over_every_screen(seat: Seat, screen: int) -> None:
    seat.window.go_to(screen)
    sheet = seat.conductor.pairing
    seat.happen(laptops.found(), laptops.pairing_began(incoming=True), laptops.code_shown())
    assert sheet.is_open
    broke = Problem(code="pairing-lost", what="The connection to ben broke.", fix="Press Pair again.")
    seat.happen(ev.PairingEnded(device=BEN, problem=broke), ev.DeviceGone(device=BEN))
    assert sheet.is_open
    assert sheet.heading.text() == "Not paired with ben"
    assert sheet.problem.problem == broke
    assert not sheet.same.isVisible()
    sheet.done.click()
    assert not seat.conductor.pairing.is_open
    assert seat.window.current == screen
