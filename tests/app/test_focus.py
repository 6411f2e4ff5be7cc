"""Incoming events never replace a form being filled in or take its focus; Stop never gets the focus on its
own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.conductor import Conductor
from app.models.draft import RunDraft
from app.views.train import TrainView
from app.widgets.navigation import TRAIN
from core.vocabulary import events as ev
from core.vocabulary.commands import StopRun
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.plan import Plan
from tests.app import world
from tests.app.fake_opening import FakeOpening
from tests.app.seat import LIMIT_MS, Seat
from tests.core.fake_node import OTHER


def theirs(run: str = "") -> Plan:
    """A run started by the other laptop, with this one."""
    return replace(world.plan(), starter=OTHER, **({"run": RunId(run)} if run else {}))


class TrainSeat(Seat):
    """At the Train screen of a focused window."""

    def __init__(self, qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> None:
        super().__init__(qtbot, conductor, opening)
        self.window.activateWindow()
        qtbot.waitUntil(self.window.isActiveWindow, timeout=LIMIT_MS)
        self.train = self.view(TRAIN, TrainView)

    @property
    def stops(self) -> list[object]:
        return [command for command in self.opening.node.commands if isinstance(command, StopRun)]


@pytest.fixture
def seat(qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> TrainSeat:
    made = TrainSeat(qtbot, conductor, opening)
    made.happen(*world.linked())
    made.train.setup._begin(RunDraft(script="/home/ada/digits/digits.py"))
    made.train.setup._on_read(world.script_read())
    return made


def test_a_run_that_arrives_leaves_the_form_to_who_is_typing(seat: TrainSeat) -> None:
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


def test_a_banner_says_whose_run_it_is_and_shows_it(seat: TrainSeat) -> None:
    setup = seat.train.setup
    assert not setup.banner.isVisible()
    seat.happen(ev.RunPlanned(plan=theirs()))
    assert setup.banner.isVisible()
    assert setup.banner.box.problem is not None
    assert setup.banner.box.problem.what == "Bob's laptop started a run."
    assert setup.banner.button.text() == "Show"
    setup.banner.button.setFocus()
    seat.press(Qt.Key.Key_Space)
    assert seat.train.pages.currentWidget() is seat.train.live
    assert not seat.train.live.stop.hasFocus()
    seat.press(Qt.Key.Key_Space)
    assert not seat.stops


def test_without_anything_typed_the_run_comes_to_the_front_and_stop_has_no_focus(seat: TrainSeat) -> None:
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
    seat: TrainSeat,
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


def test_a_notice_that_is_dismissed_does_not_hand_the_keyboard_to_stop(seat: TrainSeat) -> None:
    """When a focused widget goes, Qt focuses the next one."""
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


def test_tab_still_reaches_stop(seat: TrainSeat) -> None:
    seat.train.setup.edited = False
    seat.happen(*world.begun(theirs()))
    for _ in range(80):
        seat.press(Qt.Key.Key_Tab)
        if seat.train.live.stop.hasFocus():
            return
    pytest.fail("the keyboard never reaches Stop")
