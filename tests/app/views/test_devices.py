import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.devices import DevicesView
from app.widgets.device_card import DeviceCard
from core.environment.recipe import WantedVersions
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import Forget, Pair, Rename, SetCodePolicy
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.versions import difference
from tests.app.fake_core import FakeCore
from tests.app.laptops import BEN, CARA, PROBLEM, code_shown, found, linked, paired, pairing_began, read
from tests.app.seat import on_screen
from tests.core.fake_node import ME, VERSIONS


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> DevicesView:
    return on_screen(qtbot, bridge, DevicesView(bridge))


def card(view: DevicesView, device: DeviceId = BEN) -> DeviceCard:
    found = view.findChild(DeviceCard, f"device-{device[:8]}")
    assert isinstance(found, DeviceCard)
    return found


def press(card: DeviceCard, name: str) -> None:
    button = card.findChild(QPushButton, name)
    assert isinstance(button, QPushButton)
    assert button.isVisibleTo(card)
    button.click()


def test_this_laptop_comes_first_with_its_own_address(view: DevicesView) -> None:
    assert view.mine.name.text() == "here"
    assert view.mine.where.text() == "192.168.1.2:27600"
    assert "CPU only" in view.mine.hardware.text()
    view.mine.copy.click()
    assert QApplication.clipboard().text() == "192.168.1.2:27600"


def test_before_the_node_is_there_the_screen_says_that_it_starts(qtbot: QtBot) -> None:
    view = DevicesView(Bridge())
    qtbot.addWidget(view)
    view.show_state(view.bridge.state, ())
    assert view.mine.name.text() == "Starting…"


def test_with_nobody_there_it_looks_first_then_names_the_causes(view: DevicesView) -> None:
    assert view.looking.isVisible()
    assert not view.nobody.isVisible()
    assert view._patience.interval() == 5_000
    assert view._patience.isActive()
    view._patience.timeout.emit()
    assert view.nobody.isVisible()
    assert not view.looking.isVisible()
    said = " ".join(label.text() for label in view.nobody.findChildren(type(view.looking)))
    for cause in ("client isolation", "firewall", "VPN", "27600"):
        assert cause in said
    assert view.by_address.isVisible()
    assert "192.168.1.2:27600" in view.by_address.own.text()


def test_the_causes_go_when_a_laptop_comes(view: DevicesView, core: FakeCore) -> None:
    view._patience.timeout.emit()
    core.happen(found())
    assert not view.nobody.isVisible()
    assert not view.by_address.isVisible(), "it was offered for want of anybody"
    assert card(view).name.text() == "ben"
    core.happen(ev.DeviceGone(device=BEN))
    assert view.nobody.isVisible()
    assert view.findChild(DeviceCard, f"device-{BEN[:8]}") is None or not card(view).isVisible()


def test_an_address_that_is_being_typed_stays_when_a_laptop_comes(view: DevicesView, core: FakeCore) -> None:
    view._patience.timeout.emit()
    view.by_address.edit.setText("10.0.")
    core.happen(found())
    assert view.by_address.isVisible()


def test_looking_for_the_cause_leads_to_the_doctor(qtbot: QtBot, view: DevicesView) -> None:
    view._patience.timeout.emit()
    with qtbot.waitSignal(view.doctor_asked):
        button = view.nobody.findChild(QPushButton, "look-for-cause")
        assert isinstance(button, QPushButton)
        button.click()


def test_pair_asks_for_the_device_on_the_card(view: DevicesView, core: FakeCore) -> None:
    core.happen(found())
    press(card(view), "pair")
    assert core.commands == [Pair(device=BEN)]


def test_while_a_pairing_is_under_way_no_other_begins(view: DevicesView, core: FakeCore) -> None:
    core.happen(found(), pairing_began())
    assert not card(view).pair.isEnabled()
    assert not view.by_address.pair.isEnabled()
    core.happen(code_shown(), ev.PairingEnded(problem=PROBLEM))
    assert card(view).pair.isEnabled()


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((found(),), "Not paired"),
        ((found(), paired()), "Connecting…"),
        ((paired(),), "Not on this network"),
        ((paired(), linked()), "Ready"),
        ((paired(), linked(busy=True)), "Training"),
        ((paired(), linked(), ev.LinkDown(device=BEN, problem=PROBLEM)), "Not connected"),
        ((paired(), linked(problem=PROBLEM)), "No run possible"),
        (
            (paired(), linked(problem=Problem(code="versions-differ", what="Keras differs.", fix="Mend."))),
            "Versions differ",
        ),
    ],
)
def test_a_card_says_the_devices_state(
    view: DevicesView, core: FakeCore, events: tuple[ev.Event, ...], said: str
) -> None:
    core.happen(*events)
    assert card(view).state.text() == said
    assert BEN in card(view).state.toolTip(), "by it two laptops of one name are told apart"
    assert card(view).accessibleDescription() == said


def test_a_problem_is_said_with_its_mend(view: DevicesView, core: FakeCore) -> None:
    core.happen(paired(), linked(), ev.LinkDown(device=BEN, problem=PROBLEM))
    assert not card(view).problem.isHidden()
    assert card(view).problem.problem == PROBLEM


@pytest.mark.parametrize(
    ("theirs", "offered"),
    [
        ({"python": "3.12"}, True),
        ({"tensorflow": "2.21.1"}, True),
        ({"python": "3.10"}, False),
        ({"protocol": 2, "python": "3.12"}, False),
        ({}, False),
    ],
)
def test_the_laptop_with_the_older_versions_is_offered_an_environment_with_the_others(
    view: DevicesView,
    core: FakeCore,
    monkeypatch: pytest.MonkeyPatch,
    theirs: dict[str, object],
    offered: bool,
) -> None:
    versions = msgspec.structs.replace(VERSIONS, **theirs)
    problem = difference(VERSIONS, versions, "ben")
    core.happen(paired(), msgspec.structs.replace(linked(problem=problem), versions=versions))
    assert card(view).match.isVisibleTo(card(view)) is offered
    if offered:
        asked: list[WantedVersions] = []
        monkeypatch.setattr(view.environment, "ask", asked.append)
        press(card(view), "match")
        assert asked == [WantedVersions.like(versions)]
    core.happen(linked())
    assert not card(view).match.isVisibleTo(card(view)), "they agree now"


def test_a_reading_changes_the_card_and_does_not_make_it_anew(view: DevicesView, core: FakeCore) -> None:
    core.happen(paired(), linked(), read(cpu_pct=40))
    first = card(view)
    first.rename.setFocus()
    assert "CPU 40 %" in first.use.text()
    assert "GPU 64 %" in first.use.text()
    for second in range(5):
        core.happen(read(cpu_pct=50 + second), read(ME))
    assert card(view) is first
    assert "CPU 54 %" in first.use.text()
    assert QApplication.focusWidget() is first.rename or first.rename.hasFocus()


def test_a_reading_that_stays_away_is_shown_as_old(view: DevicesView, core: FakeCore) -> None:
    core.happen(paired(), linked(), read())
    shown = card(view)
    assert shown._quiet.isActive()
    shown._quiet.timeout.emit()
    assert shown.use.text().startswith("Nothing heard since")
    core.happen(read(cpu_pct=3))
    assert "CPU 3 %" in shown.use.text()
    assert "Nothing heard" not in shown.use.text()


def test_paired_and_present_ones_come_first(view: DevicesView, core: FakeCore) -> None:
    core.happen(found(CARA, "aaa"), found(BEN, "zzz"), paired(BEN, "zzz"), linked(BEN, "zzz"))
    assert list(view._cards) == [BEN, CARA]
    core.happen(paired(CARA, "aaa"), linked(CARA, "aaa"))
    assert list(view._cards) == [CARA, BEN]


def test_forget_asks_first(view: DevicesView, core: FakeCore) -> None:
    core.happen(paired(), linked())
    press(card(view), "forget")
    assert core.commands == []
    press(card(view), "keep")
    assert core.commands == []
    press(card(view), "forget")
    press(card(view), "really-forget")
    assert core.commands == [Forget(device=BEN)]


def test_a_new_name_is_given_by_enter_and_dropped_by_escape(
    qtbot: QtBot, view: DevicesView, core: FakeCore
) -> None:
    core.happen(paired(nickname="Benny"), linked())
    press(card(view), "rename")
    edit = card(view).edit
    assert edit.text() == "Benny"
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert not edit.isVisibleTo(card(view))
    press(card(view), "rename")
    edit.setText("  Ben's laptop ")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert core.commands == [Rename(device=BEN, nickname="Ben's laptop")]


def test_a_device_that_is_forgotten_while_it_is_renamed_offers_no_rename(
    view: DevicesView, core: FakeCore
) -> None:
    core.happen(paired(), linked())
    press(card(view), "rename")
    core.happen(ev.DeviceForgotten(device=BEN), found())
    assert not card(view).rename.isVisibleTo(card(view))
    assert card(view).pair.isVisibleTo(card(view))


def test_a_nickname_leads_and_the_own_name_is_reported(view: DevicesView, core: FakeCore) -> None:
    core.happen(paired(nickname="Benny"), linked())
    assert card(view).name.text() == "Benny"
    assert "calls itself ben" in card(view).where.text()


def test_runs_may_be_allowed_without_asking(view: DevicesView, core: FakeCore) -> None:
    core.happen(paired(), linked())
    card(view).allow.click()
    assert core.commands == [SetCodePolicy(device=BEN, policy="always")]
    core.happen(ev.CodePolicyChanged(device=BEN, policy="always"))
    assert card(view).allow.isChecked()


def test_what_is_refused_is_said_and_undone(view: DevicesView, core: FakeCore) -> None:
    core.answers[SetCodePolicy] = Refused(problem=PROBLEM)
    core.happen(paired(), linked())
    card(view).allow.click()
    core.flush()
    assert view.problem.problem == PROBLEM
    assert not card(view).allow.isChecked()


def test_pairing_by_address(qtbot: QtBot, view: DevicesView, core: FakeCore) -> None:
    view.add.click()
    assert view.by_address.isVisible()
    view.by_address.edit.setText("10.0.0.9")
    qtbot.keyClick(view.by_address.edit, Qt.Key.Key_Return)
    assert core.commands == [Pair(address="10.0.0.9:27600")]


def test_what_is_no_address_is_said_and_not_sent(view: DevicesView, core: FakeCore) -> None:
    view.add.click()
    view.by_address.edit.setText("300.1.2.3")
    view.by_address.pair.click()
    assert core.commands == []
    assert view.by_address.problem.problem is not None
    assert view.by_address.problem.problem.code == "bad-address"
    view.by_address.edit.setText("")
    view.by_address.pair.click()
    assert core.commands == []


def test_an_address_where_nobody_answers_is_said_there(view: DevicesView, core: FakeCore) -> None:
    core.answers[Pair] = Refused(problem=PROBLEM)
    view.add.click()
    view.by_address.edit.setText("10.0.0.9")
    view.by_address.pair.click()
    core.flush()
    assert view.by_address.problem.problem == PROBLEM


def test_a_forgotten_device_that_is_still_there_can_be_paired_again(
    view: DevicesView, core: FakeCore
) -> None:
    core.happen(found(), paired(), linked())
    press(card(view), "forget")
    core.happen(ev.DeviceForgotten(device=BEN))
    assert not card(view).pair.isHidden()
    assert card(view).forget.isHidden()


def test_an_address_that_changes_is_shown(view: DevicesView, core: FakeCore) -> None:
    core.happen(ev.AddressesChanged(addresses=()))
    assert view.mine.where.text() == "Not on a network"
    assert not view.mine.copy.isVisible()
    assert view.by_address.own.text() == "This laptop is not on a network."
    core.happen(ev.AddressesChanged(addresses=("10.0.0.5:27600",)))
    assert view.mine.where.text() == "10.0.0.5:27600"
    assert view.by_address.own.text() == "This laptop's own address: 10.0.0.5:27600"


def test_a_laptop_that_trains_says_so(view: DevicesView, core: FakeCore) -> None:
    me = msgspec.structs.replace(core.state.me, name="there")  # type: ignore[type-var]
    view.mine.show_me(me, True)
    assert view.mine.state.text() == "This laptop · training"
