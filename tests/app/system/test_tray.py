import pytest
from PySide6.QtWidgets import QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.system import tray as tray_module
from app.system.tray import Tray
from core.vocabulary import events as ev
from core.vocabulary.phases import Failed, Finished
from core.vocabulary.progress import Diverged, Summary
from core.vocabulary.settings import Settings
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM, code_shown, consent_asked, pairing_began


class FakeIcon(QSystemTrayIcon):
    """Records its state: without a desktop nothing would be shown."""

    told: list[tuple[str, str]] = []

    @staticmethod
    def isSystemTrayAvailable() -> bool:
        return True

    def show(self) -> None:
        """Offscreen, Qt would warn that there is no place to show it."""

    def showMessage(self, title: str, words: str, icon: object = None) -> None:  # type: ignore[override]
        FakeIcon.told.append((title, words))


@pytest.fixture
def tray(qtbot: QtBot, bridge: Bridge, core: FakeCore, monkeypatch: pytest.MonkeyPatch) -> Tray:
    monkeypatch.setattr(tray_module, "QSystemTrayIcon", FakeIcon)
    FakeIcon.told = []
    tray = Tray(bridge)
    bridge.changed.connect(lambda events, state: tray.show_state(state))
    tray.show_state(bridge.state)
    return tray


def tip(tray: Tray) -> str:
    assert tray._icon is not None
    return tray._icon.toolTip()


def test_it_says_the_state(tray: Tray, core: FakeCore) -> None:
    assert tip(tray) == "Tandem: ready"
    core.happen(*world.begun())
    assert tip(tray) == "Tandem: training"
    core.happen(pairing_began(incoming=True), code_shown())
    assert tip(tray) == "Tandem: ben wants to pair"


def test_a_question_is_said(tray: Tray, core: FakeCore) -> None:
    core.happen(consent_asked(name="ben"))
    assert tip(tray) == "Tandem: ben asks to train"


def test_a_finish_is_reported_once(tray: Tray, core: FakeCore) -> None:
    core.happen(*world.begun())
    core.happen(world.phase(Finished()))
    core.happen(ev.NoticeRaised(problem=PROBLEM))
    assert FakeIcon.told == [("Training finished", "digits.py")]


def test_a_finish_that_is_no_success_is_reported_as_such(tray: Tray, core: FakeCore) -> None:
    core.happen(*world.begun())
    core.happen(*world.finished(Summary(diverged=Diverged(value="NaN", epoch=30, step=700))))
    assert FakeIcon.told == [("Training finished, but the loss became NaN in epoch 31", "digits.py")]


def test_a_failure_is_reported_with_its_reason(tray: Tray, core: FakeCore) -> None:
    core.happen(*world.begun())
    core.happen(world.phase(Failed(problem=PROBLEM)))
    assert FakeIcon.told == [("Training failed", "digits.py: It went wrong.")]
    assert tip(tray) == "Tandem: the last run failed"


def test_an_old_end_is_not_told_to_a_new_window(
    bridge: Bridge, core: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tray_module, "QSystemTrayIcon", FakeIcon)
    FakeIcon.told = []
    core.happen(*world.begun(), world.phase(Finished()))
    Tray(bridge).show_state(bridge.state)
    assert FakeIcon.told == []


def test_notices_carry_no_markup(tray: Tray) -> None:
    tray.tell("Pairing", "<b>x</b> & \x1b[31my")
    assert FakeIcon.told == [("Pairing", "‹b›x‹/b› + y")]


def test_it_goes_with_its_setting_and_comes_back(tray: Tray, core: FakeCore) -> None:
    core.happen(ev.SettingsChanged(settings=Settings(tray=False)))
    assert tray._icon is None
    tray.tell("No", "tray")
    assert FakeIcon.told == []
    core.happen(ev.SettingsChanged(settings=Settings(tray=True)))
    assert tray._icon is not None


def test_the_icon_opens_the_window_and_its_menu_quits(qtbot: QtBot, tray: Tray) -> None:
    assert tray._icon is not None
    assert tray._menu is not None
    with qtbot.waitSignal(tray.open_asked):
        tray._icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    with qtbot.waitSignal(tray.quit_asked):
        tray._menu.actions()[-1].trigger()


def test_where_the_desktop_has_no_tray_there_is_none(bridge: Bridge, core: FakeCore) -> None:
    tray = Tray(bridge)
    tray.show_state(bridge.state)
    if not QSystemTrayIcon.isSystemTrayAvailable():
        assert not tray.there


def test_the_desktop_is_not_asked_for_a_tray_with_every_number(
    bridge: Bridge, core: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    class NoTray(FakeIcon):
        @staticmethod
        def isSystemTrayAvailable() -> bool:
            asked.append(True)
            return len(asked) > 1

    monkeypatch.setattr(tray_module, "QSystemTrayIcon", NoTray)
    now_s = [0.0]
    tray = Tray(bridge, lambda: now_s[0])
    for _ in range(5):
        tray.show_state(bridge.state)
    assert len(asked) == 1
    now_s[0] = tray_module.ASK_EVERY_S
    tray.show_state(bridge.state)
    assert (len(asked), tray._icon is not None) == (2, True)
