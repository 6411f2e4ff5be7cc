"""What arrives takes no form from who fills it in, and no keyboard; Stop never has the focus by itself."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.conductor import Conductor
from app.models.draft import Draft
from app.screens import TRAIN
from app.views.train import TrainView
from core.vocabulary import events as ev
from core.vocabulary.commands import StopRun
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.plan import Plan
from tests.app import world
from tests.app.fake_opening import FakeOpening
from tests.core.fake_node import OTHER

LIMIT_MS = 60_000


def theirs(run: str = "") -> Plan:
    """A run that the other laptop has started, with this one."""
    return replace(world.plan(), starter=OTHER, **({"run": RunId(run)} if run else {}))


@dataclass
class Seat:
    """Somebody sits at the Train screen of a whole window, which has the focus."""

    qtbot: QtBot
    conductor: Conductor
    opening: FakeOpening
    train: TrainView

    def happen(self, *events: ev.Event) -> None:
        """Until the screens have heard of all of them."""
        heard: list[ev.Event] = []
        self.conductor.bridge.changed.connect(lambda events, state: heard.extend(events))
        for event in events:
            self.opening.happen(event)
        self.qtbot.waitUntil(lambda: all(event in heard for event in events), timeout=LIMIT_MS)

    def press(self, key: Qt.Key) -> None:
        focused = QApplication.focusWidget()
        self.qtbot.keyClick(focused or self.conductor.window, key)

    @property
    def stops(self) -> list[object]:
        return [command for command in self.opening.node.commands if isinstance(command, StopRun)]


@pytest.fixture
def seat(qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> Seat:
    window = conductor.window
    train = window.view(TRAIN)
    assert isinstance(train, TrainView)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=LIMIT_MS)
    window.go_to(TRAIN)
    made = Seat(qtbot, conductor, opening, train)
    made.happen(*world.linked())
    train.setup._begin(Draft(script="/home/ada/digits/digits.py"))
    train.setup._on_read(world.script_read())
    return made


def test_a_run_that_arrives_leaves_the_form_to_who_is_typing(seat: Seat) -> None:
    edit = seat.train.setup.arguments
    edit.setFocus()
    seat.qtbot.keyClicks(edit, "--epo")
    seat.happen(ev.RunPlanned(plan=theirs()))
    seat.happen(*world.begun(theirs())[1:])
    assert seat.train.pages.currentWidget() is seat.train.setup
    assert edit.hasFocus()
    seat.qtbot.keyClicks(QApplication.focusWidget(), "chs 3")
    assert edit.text() == "--epochs 3"
    assert seat.train.setup.draft.arguments == "--epochs 3"


def test_a_banner_says_whose_run_it_is_and_shows_it(seat: Seat) -> None:
    setup = seat.train.setup
    assert not setup.banner.isVisible()
    seat.happen(ev.RunPlanned(plan=theirs()))
    assert setup.banner.isVisible()
    assert setup.banner.problem is not None
    assert setup.banner.problem.what == "Bob's laptop started a run."
    assert setup.under_way.text() == "Show"
    setup.under_way.setFocus()
    seat.press(Qt.Key.Key_Space)
    assert seat.train.pages.currentWidget() is seat.train.live
    assert not seat.train.live.stop.hasFocus()
    seat.press(Qt.Key.Key_Space)
    assert not seat.stops


def test_without_anything_typed_the_run_comes_to_the_front_and_stop_has_no_focus(seat: Seat) -> None:
    seat.train.setup.edited = False
    seat.train.setup.drop.file.setFocus()
    seat.happen(ev.RunPlanned(plan=theirs()))
    seat.happen(*world.begun(theirs())[1:])
    live = seat.train.live
    assert seat.train.pages.currentWidget() is live
    assert live.stop.isVisible()
    assert live.page.hasFocus(), "its keys scroll"
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
        seat.press(key)
    assert not seat.stops


def test_a_run_that_begins_while_a_result_is_read_does_not_hand_the_keyboard_to_stop(
    seat: Seat,
) -> None:
    seat.train.setup.edited = False
    seat.happen(*world.begun(), *world.finished())
    live = seat.train.live
    live.outcome.again.setFocus()
    assert live.outcome.again.hasFocus()
    seat.happen(ev.RunPlanned(plan=theirs("20261121-200000-9f3a01bc")))
    assert live.stop.isVisible()
    assert not live.stop.hasFocus()
    seat.press(Qt.Key.Key_Space)
    assert not seat.stops


def test_a_notice_that_is_dismissed_does_not_hand_the_keyboard_to_stop(seat: Seat) -> None:
    """Qt itself gives the focus of a widget that goes to whatever comes next."""
    seat.train.setup.edited = False
    seat.happen(*world.begun(theirs()))
    window = seat.conductor.window
    window.tell(Problem(code="note", what="Something happened.", fix=""))
    dismiss = window.findChild(QWidget, "dismiss")
    assert dismiss is not None
    QWidget.setTabOrder(dismiss, seat.train.live.stop)
    dismiss.setFocus()
    seat.press(Qt.Key.Key_Space)
    assert not dismiss.isVisible()
    assert not seat.train.live.stop.hasFocus()
    seat.press(Qt.Key.Key_Space)
    assert not seat.stops


def test_tab_still_reaches_stop(seat: Seat) -> None:
    seat.train.setup.edited = False
    seat.happen(*world.begun(theirs()))
    for _ in range(80):
        seat.press(Qt.Key.Key_Tab)
        if seat.train.live.stop.hasFocus():
            return
    pytest.fail("the keyboard never reaches Stop")
