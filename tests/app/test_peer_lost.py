"""A peer that is lost while a screen is in front: what is said there, and that nothing is lost."""

import pytest
from PySide6.QtCore import QByteArray, QMimeData, QPointF, Qt
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.conductor import Conductor
from app.models.runs_model import Column
from app.screens import DEVICES, MACHINES, RUNS, SETTINGS, TRAIN
from app.views.devices import DevicesView
from app.views.machines import MachinesView
from app.views.runs import RunsView
from app.views.settings import SettingsView
from app.views.train import TrainView
from app.widgets.role_row import MIME
from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, RunList
from core.vocabulary.commands import AnalyseScript, AnswerConsent, Command, ListRuns, PlanRun
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Failed, Finished, Training
from core.vocabulary.state import apply
from tests.app import laptops, world
from tests.app.fake_opening import FakeOpening
from tests.app.laptops import BEN
from tests.app.views.test_train_setup import planned
from tests.core.fake_node import ME, OTHER, FakeNode

LIMIT_MS = 60_000
WHY = world.lost().problem
FAILED = Problem(code="device-lost", what="Bob's laptop was lost in the run.", fix="Wake it, press Train.")


class AnsweringNode(FakeNode):
    """Knows one script and a history of one run, which ends as the present one does."""

    async def submit(self, command: Command) -> Answer:
        answer = await super().submit(command)
        match command:
            case AnalyseScript():
                return world.script_read()
            case PlanRun():
                return planned(command)
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


class Seat:
    """Somebody in front of the window."""

    def __init__(self, qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> None:
        self.qtbot, self.conductor, self.opening = qtbot, conductor, opening
        self.window = conductor.window

    def happen(self, *events: ev.Event) -> None:
        """Until the window has seen it."""
        wanted = self.opening.node.state
        for event in events:
            wanted = apply(wanted, event)
            self.opening.happen(event)
        self.qtbot.waitUntil(lambda: self.conductor.bridge.state == wanted, timeout=LIMIT_MS)

    def view(self, index: int) -> QWidget:
        self.window.go_to(index)
        view = self.window.view(index)
        assert view is not None
        self.qtbot.waitUntil(view.isVisible, timeout=LIMIT_MS)
        return view

    def loses_its_peer_in_a_run(self) -> None:
        self.happen(world.lost(), *world.finished(last=Failed(problem=FAILED)))

    @property
    def notices(self) -> list[str]:
        bar = self.window._notices
        if bar is None or not bar.isVisible():
            return []
        return [str(box.problem) for box in bar._boxes if box.problem is not None]


@pytest.fixture
def seat(qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> Seat:
    return Seat(qtbot, conductor, opening)


def test_on_devices_its_card_says_so_and_what_is_being_typed_stays(qtbot: QtBot, seat: Seat) -> None:
    devices = seat.view(DEVICES)
    assert isinstance(devices, DevicesView)
    seat.happen(*world.linked())
    card = devices._cards[OTHER]
    devices.add.click()
    devices.by_address.edit.setText("192.168.1.77")
    seat.happen(world.lost())
    assert devices._cards[OTHER] is card
    assert card.state.text() == "Not connected"
    assert card.problem.problem == WHY
    assert card.problem.isVisible()
    assert devices.by_address.edit.text() == "192.168.1.77"


def test_while_a_run_is_put_together_it_is_left_out_and_what_was_chosen_comes_back_with_it(
    qtbot: QtBot, seat: Seat
) -> None:
    train = seat.view(TRAIN)
    assert isinstance(train, TrainView)
    seat.happen(*world.linked())
    train.choose("/home/ada/digits/digits.py")
    setup = train.setup
    qtbot.waitUntil(lambda: setup.made is not None, timeout=LIMIT_MS)
    setup.arguments.setFocus()
    qtbot.keyClicks(setup.arguments, "--epochs 3")
    setup.roles.swap.click()
    qtbot.waitUntil(lambda: chief_of(train) == OTHER, timeout=LIMIT_MS)
    seat.happen(world.lost())
    qtbot.waitUntil(lambda: setup.made is not None and setup.made.plan.solo, timeout=LIMIT_MS)
    said = [finding for finding in setup._shown if finding.code == "not-connected"]
    assert said and "goes without it" in said[0].what and said[0].fix == WHY.fix
    assert setup.train.text() == "Train"
    assert setup.arguments.text() == "--epochs 3"
    seat.happen(*world.linked())
    qtbot.waitUntil(lambda: chief_of(train) == OTHER, timeout=LIMIT_MS)
    assert setup.train.text() == "Train on 2 laptops"
    assert setup.arguments.text() == "--epochs 3"


def test_a_row_that_is_dragged_while_its_laptop_is_lost_changes_nothing(qtbot: QtBot, seat: Seat) -> None:
    train = seat.view(TRAIN)
    assert isinstance(train, TrainView)
    seat.happen(*world.linked())
    train.choose("/home/ada/digits/digits.py")
    qtbot.waitUntil(lambda: chief_of(train) == ME, timeout=LIMIT_MS)
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


def test_while_it_trains_the_reason_stands_there_and_the_curves_stay(qtbot: QtBot, seat: Seat) -> None:
    train = seat.view(TRAIN)
    assert isinstance(train, TrainView)
    seat.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(3)))
    qtbot.waitUntil(train.live.isVisible, timeout=LIMIT_MS)
    curves = set(train.live.points.curves)
    assert curves
    seat.loses_its_peer_in_a_run()
    qtbot.waitUntil(train.live.outcome.problem.isVisible, timeout=LIMIT_MS)
    assert train.live.outcome.problem.problem == FAILED
    assert curves <= set(train.live.points.curves)
    assert seat.notices == [], "it is not said twice"


def test_on_machines_its_card_turns_grey_with_the_reason(qtbot: QtBot, seat: Seat) -> None:
    machines = seat.view(MACHINES)
    assert isinstance(machines, MachinesView)
    seat.happen(*world.linked(), *world.begun(), world.told(OTHER, world.reading()))
    machines = seat.view(MACHINES)
    assert isinstance(machines, MachinesView)
    heard_s = machines._clock()
    machines._clock = lambda: heard_s + 12
    seat.loses_its_peer_in_a_run()
    card = machines.cards[OTHER]
    assert card.missing.isVisible()
    assert WHY.what in card.missing.text() and WHY.fix in card.missing.text()
    assert seat.notices == [f"The run of digits.py failed: {FAILED}"]


def test_on_runs_the_run_has_failed_and_the_choice_and_order_stay(qtbot: QtBot, seat: Seat) -> None:
    seat.happen(*world.linked(), *world.begun())
    runs = seat.view(RUNS)
    assert isinstance(runs, RunsView)
    qtbot.waitUntil(lambda: runs.model.rowCount() == 2, timeout=LIMIT_MS)
    assert isinstance(runs.model.entry(0).phase, Training)
    runs.table.sortByColumn(Column.DURATION, Qt.SortOrder.AscendingOrder)
    runs.table.selectRow(1)
    chosen = [entry.run for entry in runs.chosen]
    seat.loses_its_peer_in_a_run()
    qtbot.waitUntil(lambda: isinstance(runs.model.entry(0).phase, Failed), timeout=LIMIT_MS)
    shown = runs.model.index(0, Column.STATE)
    assert shown.data() == "Failed"
    assert FAILED.fix in shown.data(Qt.ItemDataRole.ToolTipRole)
    assert [entry.run for entry in runs.chosen] == chosen
    assert runs.table.horizontalHeader().sortIndicatorSection() == Column.DURATION
    assert seat.notices == [f"The run of digits.py failed: {FAILED}"]
    seat.view(TRAIN)
    assert seat.notices == [], "there it is said at length"


def test_on_settings_its_line_says_so_and_a_name_being_typed_stays(qtbot: QtBot, seat: Seat) -> None:
    seat.happen(*world.linked(), *world.begun())
    settings = seat.view(SETTINGS)
    assert isinstance(settings, SettingsView)
    line = settings.paired._lines[OTHER]
    assert line.state.text() == "Ready"
    settings.laptop.name.setFocus()
    settings.laptop.name.setText("half a na")
    settings.network.port.setValue(27777)
    seat.loses_its_peer_in_a_run()
    assert line.state.text() == "Not connected"
    assert WHY.fix in line.state.toolTip()
    assert settings.laptop.name.text() == "half a na"
    assert settings.network.port.value() == 27777
    assert seat.notices == [f"The run of digits.py failed: {FAILED}"]


@pytest.mark.parametrize("screen", [DEVICES, TRAIN, MACHINES, RUNS, SETTINGS])
def test_a_pairing_that_breaks_says_so_over_every_screen(qtbot: QtBot, seat: Seat, screen: int) -> None:
    seat.view(screen)
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


@pytest.mark.parametrize("screen", [DEVICES, TRAIN, MACHINES, RUNS, SETTINGS])
def test_a_question_whose_asker_is_lost_goes_and_says_why(qtbot: QtBot, seat: Seat, screen: int) -> None:
    seat.view(screen)
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


def test_a_question_that_was_answered_here_goes_without_a_word(qtbot: QtBot, seat: Seat) -> None:
    seat.happen(laptops.paired(), laptops.linked(), laptops.consent_asked())
    qtbot.waitUntil(seat.conductor.consent.no.isEnabled, timeout=LIMIT_MS)
    seat.conductor.consent.no.click()
    seat.happen(ev.ConsentSettled(run=laptops.RUN, allowed=False))
    assert not seat.conductor.consent.is_open
    assert seat.notices == []


def test_a_question_that_is_taken_back_is_said(qtbot: QtBot, seat: Seat) -> None:
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
