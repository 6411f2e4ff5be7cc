import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.pairing import PairingSheet
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import AnswerPairing, CancelPairing, Pair
from tests.app.fake_core import FakeCore
from tests.app.laptops import BEN, PROBLEM, code_shown, pairing_began


@pytest.fixture
def sheet(under: QWidget, bridge: Bridge, core: FakeCore) -> PairingSheet:
    sheet = PairingSheet(bridge, under)
    bridge.changed.connect(lambda events, state: sheet.show_state(state, events))
    return sheet


def armed(qtbot: QtBot, sheet: PairingSheet) -> None:
    qtbot.waitUntil(sheet.same.isEnabled, timeout=30_000)


def test_both_screens_digits_are_shown_large_and_apart(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), code_shown("000355"))
    assert sheet.is_open
    assert sheet.code.text() == "000 355"
    assert sheet.code.accessibleName() == "The digits are 0 0 0 3 5 5"
    assert "ben" in sheet.heading.text()
    assert sheet.same.isVisible()
    assert sheet.different.isVisible()


def test_no_button_has_the_focus_and_enter_answers_nothing(
    qtbot: QtBot, sheet: PairingSheet, core: FakeCore
) -> None:
    core.happen(pairing_began(), code_shown())
    armed(qtbot, sheet)
    assert not sheet.same.hasFocus()
    assert not sheet.different.hasFocus()
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
        qtbot.keyClick(sheet, key)
    assert core.commands == []


def test_a_click_meant_for_something_else_answers_nothing(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(incoming=True), code_shown())
    sheet.same.click()
    assert core.commands == []


@pytest.mark.parametrize("same", [True, False])
def test_an_answer_is_given_once(qtbot: QtBot, sheet: PairingSheet, core: FakeCore, same: bool) -> None:
    core.happen(pairing_began(), code_shown())
    armed(qtbot, sheet)
    button = sheet.same if same else sheet.different
    button.click()
    button.click()
    assert core.commands == [AnswerPairing(same=same)]


def test_the_keyboard_reaches_both_answers_and_nothing_under_the_sheet(
    qtbot: QtBot, sheet: PairingSheet, core: FakeCore
) -> None:
    core.happen(pairing_began(), code_shown())
    armed(qtbot, sheet)
    reached = set()
    for _ in range(6):
        sheet.focusNextPrevChild(True)
        focused = sheet.focusWidget() or sheet.window().focusWidget()
        assert focused is not None
        reached.add(focused.objectName())
    assert reached == {"cancel-pairing", "same", "different"}


def test_escape_gives_the_pairing_up(qtbot: QtBot, sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), code_shown())
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert core.commands == [CancelPairing()]


def test_an_incoming_request_is_reported_once(qtbot: QtBot, sheet: PairingSheet, core: FakeCore) -> None:
    told: list[str] = []
    sheet.incoming.connect(told.append)
    core.happen(pairing_began(incoming=True))
    core.happen(code_shown())
    core.happen(ev.PairingAnswered())
    assert told == ["ben"]
    assert "ben" in sheet.heading.text()


def test_ones_own_request_is_not_reported(sheet: PairingSheet, core: FakeCore) -> None:
    told: list[str] = []
    sheet.incoming.connect(told.append)
    core.happen(pairing_began(), code_shown())
    assert told == []


def test_a_known_name_with_a_new_key_is_warned_of(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), code_shown(warning=PROBLEM))
    assert sheet.warning.isVisible()
    assert sheet.warning.property("level") == "bad"
    assert sheet.warning.problem == PROBLEM


def test_waiting_for_the_other_side_shows_progress(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began())
    assert sheet.progress.isVisible()
    core.happen(code_shown())
    assert not sheet.progress.isVisible()
    core.happen(ev.PairingAnswered())
    assert sheet.progress.isVisible()
    assert not sheet.same.isVisible()
    assert sheet.code.isVisible()


def test_a_failure_says_why_and_can_be_tried_again(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), code_shown(), ev.PairingEnded(device=BEN, problem=PROBLEM))
    assert sheet.problem.problem == PROBLEM
    assert not sheet.code.isVisible()
    sheet.again.click()
    assert core.commands == [Pair(device=BEN)]


def test_trying_again_may_be_refused(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), ev.PairingEnded(problem=PROBLEM))
    other = PROBLEM.__class__(code="pause", what="Three failures; wait 60 s.", fix="Wait.")
    core.answers[Pair] = Refused(problem=other)
    sheet.again.click()
    core.flush()
    assert sheet.problem.problem == other
    assert sheet.done.isVisible()


def test_a_success_says_so_and_closes(qtbot: QtBot, sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), code_shown(), ev.PairingEnded(device=BEN))
    assert sheet.heading.text() == "Paired with ben"
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.is_open
    assert core.commands == []


def test_enter_closes_what_leaves_nothing_to_decide(
    qtbot: QtBot, sheet: PairingSheet, core: FakeCore
) -> None:
    core.happen(pairing_began(), code_shown())
    core.happen(ev.PairingEnded(device=BEN))
    qtbot.keyClick(sheet.done, Qt.Key.Key_Return)
    assert sheet.window().focusWidget() is not sheet.same
    assert not sheet.is_open


def test_an_old_failure_does_not_come_up_in_a_new_window(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    core.happen(pairing_began(), ev.PairingEnded(problem=PROBLEM))
    under = QWidget()
    qtbot.addWidget(under)
    sheet = PairingSheet(bridge, under)
    sheet.show_state(bridge.state, ())
    assert not sheet.is_open


def test_a_dismissed_ending_stays_away(sheet: PairingSheet, core: FakeCore) -> None:
    core.happen(pairing_began(), ev.PairingEnded(problem=PROBLEM))
    sheet.done.click()
    core.happen(ev.NoticeRaised(problem=PROBLEM))
    assert not sheet.is_open
    core.happen(pairing_began())
    assert sheet.is_open


def test_the_focus_goes_back_to_where_it_was(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> None:
    from PySide6.QtWidgets import QLineEdit, QVBoxLayout

    under = QWidget()
    qtbot.addWidget(under)
    edit = QLineEdit()
    QVBoxLayout(under).addWidget(edit)
    under.show()
    under.activateWindow()
    qtbot.waitUntil(lambda: under.isActiveWindow(), timeout=30_000)
    edit.setFocus()
    sheet = PairingSheet(bridge, under)
    sheet.open()
    assert not edit.hasFocus()
    sheet.shut()
    assert edit.hasFocus()
