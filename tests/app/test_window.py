from collections.abc import Sequence

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import theme
from app.bridge import Bridge
from app.views.view import View
from app.widgets.navigation import ScreenEntry
from app.widgets.notice_bar import NoticeButton
from app.widgets.sheet import Sheet
from app.window import Window
from core.discovery.presence import no_network
from core.vocabulary import events as ev
from core.vocabulary.events import Event
from core.vocabulary.settings import Theme
from core.vocabulary.state import State
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM

ENTRIES = (
    ScreenEntry("One", "devices"),
    ScreenEntry("Two", "train"),
    ScreenEntry("Last", "settings", bottom=True),
)


class Page(View):
    title = "Page"

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self.seen: list[tuple[State, Sequence[Event]]] = []

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        self.seen.append((state, events))


@pytest.fixture
def window(qtbot: QtBot) -> Window:
    window = Window(ENTRIES)
    qtbot.addWidget(window)
    window.may_close = True
    return window


def test_it_paints_before_it_has_any_screen(qtbot: QtBot, window: Window) -> None:
    with qtbot.waitSignal(window.painted, timeout=60_000):
        window.show()


def test_a_screen_filled_in_gets_the_state_and_then_every_batch(
    window: Window, bridge: Bridge, core: FakeCore
) -> None:
    page = Page(bridge)
    window.fill(1, page, bridge.state)
    assert page.seen == [(bridge.state, ())]
    bridge.changed.connect(lambda events, state: window.show_state(state, events))
    event = ev.NoticeRaised(problem=PROBLEM)
    core.happen(event)
    assert page.seen[-1] == (core.state, (event,))
    assert window.view(1) is page
    assert window.view(0) is None


def test_filling_in_does_not_change_the_screen(window: Window, bridge: Bridge) -> None:
    window.go_to(1)
    for index in (0, 1, 2):
        window.fill(index, Page(bridge), bridge.state)
        assert window.current == 1


def test_keys_and_mouse_lead_to_a_screen(qtbot: QtBot, window: Window, bridge: Bridge) -> None:
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=30_000)
    qtbot.keyClick(window, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert window.current == 2
    button = window.navigation.findChild(QPushButton, "screen-train")
    assert isinstance(button, QPushButton)
    button.click()
    assert window.current == 1
    assert button.isChecked()


def test_a_sheet_keeps_the_keys_from_the_screens(qtbot: QtBot, window: Window) -> None:
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=30_000)
    sheet = Sheet(window.sheet_parent(), "A question")
    sheet.open()
    assert sheet.size() == window.sheet_parent().size()
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert window.current == 0
    window.resize(1000, 700)
    assert sheet.size() == window.sheet_parent().size()


def test_notices_stand_above_the_screens_until_dismissed(
    window: Window, bridge: Bridge, core: FakeCore
) -> None:
    bridge.changed.connect(lambda events, state: window.show_state(state, events))
    core.happen(ev.NoticeRaised(problem=PROBLEM))
    bar = window._notices
    assert bar is not None
    assert not bar.isHidden()
    bar.dismiss(PROBLEM)
    assert bar.isHidden()


def test_a_page_stands_in_the_place_of_all_screens(window: Window) -> None:
    page = QWidget()
    window.show_page(page)
    assert window.sheet_parent().isAncestorOf(page)
    assert not window.navigation.isVisibleTo(window)
    window.show_screens()
    assert window.navigation.isVisibleTo(window)


def test_closing_is_its_owners_decision(qtbot: QtBot, window: Window) -> None:
    window.may_close = False
    window.show()
    with qtbot.waitSignal(window.close_asked):
        assert not window.close()
    window.may_close = True
    assert window.close()


@pytest.mark.parametrize("chosen", ["light", "dark"])
def test_a_theme_holds_where_the_platform_offers_none(qtbot: QtBot, window: Window, chosen: Theme) -> None:
    theme.use(chosen)
    try:
        assert theme.colours().name == chosen
        qtbot.waitUntil(lambda: window.palette().window().color().name() == theme.colours().window)
        qtbot.waitUntil(lambda: theme.colours().accent in window.navigation.styleSheet())
    finally:
        theme.use("system")


def test_the_notice_that_there_is_no_network_goes_when_there_is_one(
    window: Window, bridge: Bridge, core: FakeCore
) -> None:
    bridge.changed.connect(lambda events, state: window.show_state(state, events))
    core.happen(ev.AddressesChanged(addresses=()), ev.NoticeRaised(problem=no_network(())))
    bar = window._notices
    assert bar is not None and not bar.isHidden()
    core.happen(ev.AddressesChanged(addresses=("10.0.0.5:27600",)))
    assert bar.isHidden()


def test_a_notice_of_the_node_has_a_button_where_somebody_offers_one(
    window: Window, bridge: Bridge, core: FakeCore
) -> None:
    pressed: list[str] = []
    window.offer("other", lambda told: NoticeButton("Do it", lambda: pressed.append(told.code)))
    window.offer(PROBLEM.code, lambda told: NoticeButton("Mend", lambda: pressed.append(told.code)))
    core.happen(ev.NoticeRaised(problem=PROBLEM))
    core.flush()
    window.show_state(core.state, ())
    button = window.findChild(QPushButton, "notice-offer")
    assert button is not None and button.text() == "Mend"
    button.click()
    assert pressed == [PROBLEM.code]
