import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.welcome import WelcomeView
from core.vocabulary import events as ev
from core.vocabulary.answers import Finding, Findings, Refused
from core.vocabulary.commands import ChangeSettings, Pair, RunDoctor
from core.vocabulary.settings import SettingsChange
from tests.app.fake_core import FakeCore
from tests.app.laptops import BEN, PROBLEM, found, paired

FINDINGS = Findings(
    findings=(
        Finding(code="firewall", topic="network", level="warning", what="A wall.", fix="Open it."),
        Finding(code="gpu", topic="machine", level="note", what="No GPU."),
    )
)
DONE = ChangeSettings(change=SettingsChange(first_run_done=True))


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> WelcomeView:
    core.answers[RunDoctor] = FINDINGS
    view = WelcomeView(bridge)
    qtbot.addWidget(view)
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    view.show_state(bridge.state, ())
    core.flush()
    view.resize(900, 700)
    view.show()
    return view


def test_the_first_step_has_the_name_and_what_the_network_is_like(view: WelcomeView, core: FakeCore) -> None:
    assert view.name.text() == "here"
    assert "192.168.1.2:27600" in view.by_address.own.text()
    assert core.commands == [RunDoctor()]
    assert [line.accessibleName() for line in view.findings._lines.values()] == ["Warning: A wall."]
    assert not view.checking.isVisible()
    assert view.step.text() == "Step 1 of 2"


def test_a_new_name_is_kept_before_the_next_step(qtbot: QtBot, view: WelcomeView, core: FakeCore) -> None:
    view.name.setText("desk")
    qtbot.keyClick(view.name, Qt.Key.Key_Return)
    core.flush()
    assert core.commands[-1] == ChangeSettings(change=SettingsChange(name="desk"))
    assert view.steps.currentIndex() == 0, "pairing is on the same page"
    view.next.click()
    core.flush()
    assert len(core.asked(ChangeSettings)) == 1, "it is kept already"
    assert view.steps.currentIndex() == 1


def test_the_others_see_a_new_name_once_the_field_is_left(
    qtbot: QtBot, view: WelcomeView, core: FakeCore
) -> None:
    view.activateWindow()
    view.name.setFocus()
    qtbot.waitUntil(view.name.hasFocus)
    view.name.setText("desk")
    assert not core.asked(ChangeSettings)
    view.next.setFocus()
    assert core.asked(ChangeSettings) == [ChangeSettings(change=SettingsChange(name="desk"))]


def test_the_others_see_a_new_name_soon_after_the_last_letter(
    qtbot: QtBot, view: WelcomeView, core: FakeCore
) -> None:
    view.name.clear()
    QTest.keyClicks(view.name, "desk")
    assert not core.asked(ChangeSettings)
    qtbot.waitUntil(lambda: bool(core.asked(ChangeSettings)), timeout=60_000)
    QTest.keyClicks(view.name, "top")  # before the answer
    core.flush()
    view.next.click()
    names = [each.change.name for each in core.asked(ChangeSettings) if isinstance(each, ChangeSettings)]
    assert names == ["desk", "desktop"]


def test_an_empty_name_is_not_reported_while_somebody_types(
    qtbot: QtBot, view: WelcomeView, core: FakeCore
) -> None:
    QTest.keyClick(view.name, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(view.name, Qt.Key.Key_Backspace)
    assert not view.settle.isActive()


def test_the_other_laptop_is_paired_under_the_new_name(view: WelcomeView, core: FakeCore) -> None:
    core.happen(found())
    core.held = True
    view.name.setText("desk")
    view.nearby._lines[BEN].pair.click()
    assert core.commands[-1] == ChangeSettings(change=SettingsChange(name="desk"))
    core.release()
    core.flush()
    assert core.asked(Pair) == [Pair(device=BEN)]


def test_nobody_is_paired_under_a_name_that_cannot_be(view: WelcomeView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    core.happen(found())
    view.name.setText("\tx")
    view.nearby._lines[BEN].pair.click()
    core.flush()
    assert view.problem.problem == PROBLEM
    assert not core.asked(Pair)


def test_a_name_is_kept_also_by_whoever_skips_the_steps(view: WelcomeView, core: FakeCore) -> None:
    view.name.setText("desk")
    view.skip.click()
    assert core.commands[-1] == ChangeSettings(change=SettingsChange(name="desk", first_run_done=True))


def test_a_name_that_cannot_be_keeps_nobody_in_the_steps(view: WelcomeView, core: FakeCore) -> None:
    view.name.setText("a\tb")
    view.skip.click()
    assert core.commands[-1] == DONE


def test_next_pressed_twice_leaves_no_step_out(view: WelcomeView, core: FakeCore) -> None:
    core.held = True
    view.name.setText("desk")
    view.next.click()
    view.next.click()
    assert len(core.asked(ChangeSettings)) == 2
    core.release()
    core.flush()
    assert view.steps.currentIndex() == 1


def test_an_address_that_answers_after_the_steps_were_left_disturbs_nobody(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    core.answers[RunDoctor] = FINDINGS
    answers: list[object] = []
    view = WelcomeView(bridge)
    core.held = True
    view.by_address.asked.emit("10.0.0.7:27600")
    bridge.submit(RunDoctor(), answers.append)
    shiboken6.delete(view)
    core.release()
    core.flush()
    assert answers == [FINDINGS], "the next answer comes"


def test_a_name_that_cannot_be_is_said_and_the_step_stays(view: WelcomeView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    view.name.setText("\tx")
    view.next.click()
    core.flush()
    assert view.steps.currentIndex() == 0
    assert view.problem.problem == PROBLEM


def test_what_is_being_typed_stays_when_the_state_changes(view: WelcomeView, core: FakeCore) -> None:
    view.name.setText("half a na")
    core.happen(ev.AddressesChanged(addresses=("10.0.0.1:27600",)))
    assert view.name.text() == "half a na"
    assert "10.0.0.1:27600" in view.by_address.own.text()


def test_pairing_is_on_the_first_page_and_may_be_left_out(view: WelcomeView, core: FakeCore) -> None:
    assert view.next.text() == "Continue alone"
    assert view.next.property("kind") == "primary"
    core.happen(found())
    assert view.next.property("kind") == "", "Pair is the deed now"
    view.nearby._lines[BEN].pair.click()
    assert core.commands[-1] == Pair(device=BEN)
    core.happen(paired())
    assert view.next.text() == "Next"
    assert not view.nearby._lines[BEN].paired.isHidden()
    view.by_address.edit.setText("10.0.0.7")
    view.by_address.pair.click()
    assert core.commands[-1] == Pair(address="10.0.0.7:27600")
    core.happen(ev.DeviceForgotten(device=BEN), ev.DeviceGone(device=BEN))
    assert view.nearby._lines == {}
    view.next.click()
    assert view.steps.currentIndex() == 1
    assert view.partners.text() == "Try it"


def test_once_paired_it_goes_on_to_the_sample_by_itself(view: WelcomeView, core: FakeCore) -> None:
    core.happen(found(), ev.PairingBegan(incoming=False, name="Ben", address="", device=BEN))
    core.happen(ev.PairingEnded(device=BEN, problem=PROBLEM))
    assert view.steps.currentIndex() == 0
    core.happen(ev.PairingBegan(incoming=False, name="Ben", address="", device=BEN))
    core.happen(paired(), ev.PairingEnded(device=BEN))
    assert view.steps.currentIndex() == 1
    assert view.partners.text().startswith("Paired with ")
    assert view.next.text() == "Use my own script", "it leads to the Train screen"
    core.happen(ev.PairingBegan(incoming=True, name="Eve", address=""), ev.PairingEnded())
    assert view.steps.currentIndex() == 1


def test_the_card_of_the_second_step_is_as_tall_as_what_it_says(view: WelcomeView, core: FakeCore) -> None:
    view.next.click()
    core.flush()
    card = view.train.parentWidget()
    assert card is not None and card.height() < view.steps.height() * 3 // 4


def test_the_last_step_trains_the_sample(view: WelcomeView, core: FakeCore) -> None:
    finished: list[str] = []
    view.finished.connect(finished.append)
    view.next.click()
    assert view.steps.currentIndex() == 1
    assert view.next.text() == "Not now", "nobody is paired yet"
    view.train.click()
    assert finished == ["digits"]
    assert core.commands[-1] == DONE


@pytest.mark.parametrize("at", [0, 1])
def test_every_step_can_be_skipped(view: WelcomeView, core: FakeCore, at: int) -> None:
    finished: list[str] = []
    view.finished.connect(finished.append)
    for _ in range(at):
        view.next.click()
    assert view.skip.isVisible() == (at == 0), "Not now says it on the last one"
    (view.skip if at == 0 else view.next).click()
    assert finished == [""]
    assert core.commands[-1] == DONE


def test_one_can_go_back(view: WelcomeView) -> None:
    assert view.back.isHidden()
    view.next.click()
    view.back.click()
    assert view.steps.currentIndex() == 0


def test_a_doctor_that_cannot_look_says_why(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> None:
    core.answers[RunDoctor] = Refused(problem=PROBLEM)
    view = WelcomeView(bridge)
    qtbot.addWidget(view)
    view.show_state(bridge.state, ())
    core.flush()
    assert view.problem.problem == PROBLEM
