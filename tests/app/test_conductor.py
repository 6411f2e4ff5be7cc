import gc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.conductor import Conductor
from app.screens import DEVICES, SCREENS, SETTINGS, TRAIN, Screen
from app.tray import Tray
from app.views.devices import DevicesView
from app.views.lifecycle import StartProblemPage
from app.views.view import View
from app.window import Window
from core.vocabulary import events as ev
from core.vocabulary.commands import StopRun
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.phases import Finished
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from tests.app.fake_opening import FakeOpening
from tests.app.laptops import BEN, PROBLEM, code_shown, consent_asked, found, pairing_began
from tests.app.run_events import phase, training
from tests.core.fake_node import OTHER, FakeNode, started

LIMIT_MS = 60_000


class Make(Protocol):
    def __call__(self, opening: FakeOpening, *, first_run: bool = False) -> Conductor: ...


class Plain(View):
    """In the place of the screens that are tested elsewhere."""

    title = "Plain"

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self.chosen: list[str] = []

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        pass

    def train_example(self, name: str) -> None:
        self.chosen.append(name)

    def choose(self, path: str) -> None:
        self.chosen.append(path)


PLAIN = [
    each if index in (DEVICES, SETTINGS) else Screen(each.entry, lambda: Plain)
    for index, each in enumerate(SCREENS)
]


@pytest.fixture
def quits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The program's end, which would be the tests' own."""
    quits: list[int] = []
    monkeypatch.setattr(QApplication, "quit", staticmethod(lambda: quits.append(1)))
    return quits


@pytest.fixture
def make(qtbot: QtBot, quits: list[int]) -> Iterator[Make]:
    made: list[Conductor] = []

    def make(opening: FakeOpening, *, first_run: bool = False) -> Conductor:
        window = Window(tuple(screen.entry for screen in SCREENS), first_run=first_run)
        qtbot.addWidget(window, before_close_func=lambda window: setattr(window, "may_close", True))
        window.show()
        conductor = Conductor(window, opening, PLAIN)
        made.append(conductor)
        conductor.begin()
        return conductor

    yield make
    for conductor in made:
        if conductor.core is not None:
            conductor.core.ask_to_end()
            assert conductor.core.wait_ended(60)
    gc.collect()


def settled(first_run_done: bool = True) -> FakeOpening:
    opening = FakeOpening()
    event = ev.SettingsChanged(settings=Settings(first_run_done=first_run_done))
    opening.node.state = apply(apply(State(), started()), event)
    return opening


@pytest.fixture
def opening() -> FakeOpening:
    return settled()


@pytest.fixture
def running(qtbot: QtBot, make: Make, opening: FakeOpening) -> Conductor:
    """All screens are filled in and the node is there."""
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor.window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    return conductor


def happen(qtbot: QtBot, conductor: Conductor, opening: FakeOpening, *events: ev.Event) -> None:
    wanted = apply_all(opening.node.state, events)
    for event in events:
        opening.happen(event)
    qtbot.waitUntil(lambda: conductor.bridge.state == wanted, timeout=LIMIT_MS)


def apply_all(state: State, events: tuple[ev.Event, ...]) -> State:
    for event in events:
        state = apply(state, event)
    return state


def test_every_screen_is_filled_in(running: Conductor) -> None:
    for index in range(len(SCREENS)):
        assert running.window.view(index) is not None


def test_restarting_in_another_environment_ends_this_program_and_leaves_word_what_follows(
    qtbot: QtBot, running: Conductor, quits: list[int], tmp_path: Path
) -> None:
    devices = running.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    for name in ("tandem-gui", "python"):
        (tmp_path / name).touch(0o755)
    devices.restart_asked.emit(tmp_path / "tandem")
    qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert running.window.next_program == (str(tmp_path / "tandem-gui"), "--home", "/home")


def test_this_window_stays_where_the_other_environment_is_gone(
    qtbot: QtBot, running: Conductor, quits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Problem | None] = []
    monkeypatch.setattr(running.window, "tell", told.append)
    devices = running.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    devices.restart_asked.emit(Path("/e/bin/tandem"))
    assert running.window.next_program == () and not quits
    assert [problem.code for problem in told if problem is not None] == ["environment-gone"]


def test_nothing_is_restarted_in_the_middle_of_a_run(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, quits: list[int]
) -> None:
    happen(qtbot, running, opening, *training())
    devices = running.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    assert not devices.environment.restart.isEnabled()
    devices.restart_asked.emit(Path("/e/bin/tandem"))
    assert running.window.next_program == () and not quits


def test_another_process_s_node_is_not_left_for_another_environment(qtbot: QtBot, make: Make) -> None:
    opening = settled()
    opening.own = False
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor.window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    devices = conductor.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    qtbot.waitUntil(lambda: not devices.environment.restart.isEnabled(), timeout=LIMIT_MS)
    devices.restart_asked.emit(Path("/e/bin/tandem"))
    assert conductor.window.next_program == ()


def test_an_incoming_pairing_brings_the_window_forward(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    running.window.hide()
    happen(qtbot, running, opening, pairing_began(incoming=True), code_shown())
    assert running.window.isVisible()
    assert running.pairing.is_open


def test_a_question_brings_the_window_forward(qtbot: QtBot, running: Conductor, opening: FakeOpening) -> None:
    running.window.showMinimized()
    happen(qtbot, running, opening, consent_asked())
    assert running.consent.is_open
    assert not running.window.isMinimized()


@pytest.mark.parametrize("screen", range(len(SCREENS)))
def test_a_question_is_shown_wherever_its_user_is(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, screen: int
) -> None:
    running.window.go_to(screen)
    happen(qtbot, running, opening, consent_asked())
    for seen in (running.consent.once, running.consent.looks):
        assert seen.isVisible()
        assert not seen.visibleRegion().isEmpty()
    assert running.window.current == screen


def test_a_question_is_shown_over_the_first_steps_too(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    running._show_welcome()
    qtbot.waitUntil(lambda: running._welcome is not None, timeout=LIMIT_MS)
    happen(qtbot, running, opening, consent_asked())
    assert running.consent.looks.isVisible()
    assert not running.consent.looks.visibleRegion().isEmpty()


def test_a_pairing_lies_over_a_question(qtbot: QtBot, running: Conductor, opening: FakeOpening) -> None:
    happen(qtbot, running, opening, pairing_began(incoming=True), code_shown())
    happen(qtbot, running, opening, consent_asked())
    siblings = running.window.sheet_parent().children()
    assert siblings.index(running.pairing) > siblings.index(running.consent)


def test_a_question_takes_the_place_of_a_pairing_that_is_over(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    happen(qtbot, running, opening, pairing_began(incoming=True), code_shown(), ev.PairingEnded(device=BEN))
    pairing = running.pairing
    assert pairing.is_open
    happen(qtbot, running, opening, consent_asked())
    assert not running.pairing.is_open
    assert running.consent.is_open


def test_closing_an_idle_window_ends_the_node_and_the_program(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, quits: list[int]
) -> None:
    running.window.close()
    assert not running.window.isVisible()
    qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert opening.closed == 1
    assert opening.node.commands == []


def test_closing_while_training_asks_first(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, quits: list[int]
) -> None:
    happen(qtbot, running, opening, *training())
    running.window.close()
    assert running.window.isVisible()
    assert running.shutdown.is_open
    running.shutdown.stay.click()
    assert not running.window.isVisible()
    assert opening.closed == 0
    assert quits == []


def test_a_run_that_ends_in_the_background_brings_the_window_back_where_no_tray_can(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    happen(qtbot, running, opening, *training())
    running.window.close()
    assert not running.tray.there, "this desktop has none"
    assert "starting Tandem again brings it back" in running.shutdown.words.text()
    running.shutdown.stay.click()
    happen(qtbot, running, opening, found(name="ben"))
    assert not running.window.isVisible(), "it stays away as long as the run goes on"
    happen(qtbot, running, opening, phase(Finished()))
    assert running.window.isVisible()


def test_with_a_tray_the_window_stays_away_until_it_is_asked_for(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tray, "there", True)
    happen(qtbot, running, opening, *training())
    running.window.close()
    assert "icon in the tray brings it back" in running.shutdown.words.text()
    running.shutdown.stay.click()
    happen(qtbot, running, opening, phase(Finished()))
    assert not running.window.isVisible()
    running.tray.open_asked.emit()
    assert running.window.isVisible()


def test_a_node_that_is_lost_in_the_background_is_said(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    happen(qtbot, running, opening, *training())
    running.window.close()
    running.shutdown.stay.click()
    opening.lose(PROBLEM)
    qtbot.waitUntil(lambda: page(running) is not None, timeout=LIMIT_MS)


def test_stop_and_quit_stops_the_run_and_ends(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, quits: list[int]
) -> None:
    happen(qtbot, running, opening, *training())
    running.window.close()
    running.shutdown.quit.click()
    qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert opening.node.commands == [StopRun()]
    assert opening.closed == 1


def test_a_run_of_another_process_goes_on_when_the_window_closes(
    qtbot: QtBot, make: Make, quits: list[int]
) -> None:
    opening = settled()
    opening.own = False
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    happen(qtbot, conductor, opening, *training())
    conductor.window.close()
    qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert opening.node.commands == []


def test_where_no_node_can_be_had_a_page_says_why_and_tries_again(
    qtbot: QtBot, make: Make, opening: FakeOpening
) -> None:
    opening.problem = PROBLEM
    conductor = make(opening)
    qtbot.waitUntil(lambda: page(conductor) is not None, timeout=LIMIT_MS)
    shown = page(conductor)
    assert shown is not None
    assert shown.problem.problem == PROBLEM
    assert not conductor.window.navigation.isVisible()
    opening.problem = None
    shown.again.click()
    qtbot.waitUntil(conductor.window.navigation.isVisible, timeout=LIMIT_MS)
    assert opening.opened == 1


def test_a_node_that_is_lost_is_said_in_the_screens_place(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    opening.lose(PROBLEM)
    qtbot.waitUntil(lambda: page(running) is not None, timeout=LIMIT_MS)
    shown = page(running)
    assert shown is not None
    opening.node = FakeNode()
    qtbot.waitUntil(lambda: not running._alive(), timeout=LIMIT_MS)
    shown.again.click()
    qtbot.waitUntil(running.window.navigation.isVisible, timeout=LIMIT_MS)


@pytest.mark.parametrize(
    "events", [(pairing_began(incoming=True), code_shown()), (consent_asked(),), tuple(training())]
)
def test_a_node_that_is_lost_leaves_no_question_over_the_page(
    qtbot: QtBot, running: Conductor, opening: FakeOpening, events: tuple[ev.Event, ...]
) -> None:
    happen(qtbot, running, opening, *events)
    if running.bridge.state.busy:
        running.window.close()
    sheets = (running.pairing, running.consent, running.shutdown)
    assert any(sheet.is_open for sheet in sheets)
    opening.lose(PROBLEM)
    qtbot.waitUntil(lambda: page(running) is not None, timeout=LIMIT_MS)
    assert not any(sheet.is_open for sheet in sheets)


def test_a_node_ended_from_elsewhere_is_said_too(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    happen(qtbot, running, opening, ev.NodeStopped())
    qtbot.waitUntil(lambda: page(running) is not None, timeout=LIMIT_MS)


def test_the_first_run_begins_with_its_steps_and_ends_on_train(qtbot: QtBot, make: Make) -> None:
    conductor = make(settled(first_run_done=False))
    qtbot.waitUntil(lambda: conductor._welcome is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    welcome = conductor._welcome
    assert welcome is not None
    welcome.finished.emit("digits")
    assert conductor._welcome is None
    assert conductor.window.current == TRAIN
    train = conductor.window.view(TRAIN)
    assert isinstance(train, Plain)
    assert train.chosen == ["digits"]
    assert conductor.window.navigation.isVisible()


def test_a_run_that_begins_meanwhile_takes_the_place_of_the_first_steps(qtbot: QtBot, make: Make) -> None:
    """The other one pressed Train: whoever allows it sees it train."""
    opening = settled(first_run_done=False)
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor._welcome is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    happen(qtbot, conductor, opening, *training())
    qtbot.waitUntil(lambda: conductor._welcome is None, timeout=LIMIT_MS)
    assert conductor.window.current == TRAIN
    assert conductor.window.navigation.isVisible()


def test_in_the_first_steps_the_news_of_a_pairing_closes_by_itself(qtbot: QtBot, make: Make) -> None:
    opening = settled(first_run_done=False)
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor._welcome is not None, timeout=LIMIT_MS)
    began = ev.PairingBegan(incoming=False, name="Ben", address="", device=OTHER)
    happen(qtbot, conductor, opening, began, ev.PairingCodeShown(device=OTHER, name="Ben", code="123456"))
    assert conductor.pairing.is_open
    happen(
        qtbot, conductor, opening, ev.DevicePaired(device=OTHER, name="Ben"), ev.PairingEnded(device=OTHER)
    )
    qtbot.waitUntil(lambda: not conductor.pairing.is_open, timeout=LIMIT_MS)
    assert conductor._welcome is not None
    assert conductor._welcome.partners.text() == "Paired with Ben"


def test_before_the_first_steps_no_screen_flashes_by(qtbot: QtBot, make: Make) -> None:
    conductor = make(settled(first_run_done=False), first_run=True)
    assert not conductor.window.navigation.isVisible()
    qtbot.waitUntil(lambda: conductor._welcome is not None, timeout=LIMIT_MS)
    assert not conductor.window.navigation.isVisible()
    assert conductor._welcome is not None
    conductor._welcome.finished.emit("")
    assert conductor.window.navigation.isVisible()


def test_where_the_settings_file_was_wrong_about_the_first_run_the_screens_come(
    qtbot: QtBot, make: Make, opening: FakeOpening
) -> None:
    conductor = make(opening, first_run=True)
    qtbot.waitUntil(conductor.window.navigation.isVisible, timeout=LIMIT_MS)
    assert conductor._welcome is None


def test_a_node_that_cannot_start_is_said_in_place_of_the_first_steps(qtbot: QtBot, make: Make) -> None:
    conductor = make(FakeOpening(PROBLEM), first_run=True)
    qtbot.waitUntil(lambda: page(conductor) is not None, timeout=LIMIT_MS)


def test_later_starts_show_the_devices_at_once(running: Conductor) -> None:
    assert running._welcome is None
    assert running.window.current == DEVICES


def test_a_script_from_the_desktop_is_chosen_as_soon_as_its_screen_is_there(qtbot: QtBot, make: Make) -> None:
    conductor = make(settled())
    conductor.open_script("/home/anna/train.py")
    assert conductor.window.view(TRAIN) is None, "it was asked for earlier"
    qtbot.waitUntil(lambda: conductor.window.view(TRAIN) is not None, timeout=LIMIT_MS)
    conductor.open_script("/home/anna/other.py")
    train = conductor.window.view(TRAIN)
    assert isinstance(train, Plain)
    assert train.chosen == ["/home/anna/train.py", "/home/anna/other.py"]
    assert conductor.window.current == TRAIN


def test_looking_for_the_cause_leads_to_the_doctor(
    qtbot: QtBot, running: Conductor, opening: FakeOpening
) -> None:
    devices = running.window.view(DEVICES)
    assert devices is not None
    devices.doctor_asked.emit()  # type: ignore[attr-defined]
    assert running.window.current == SETTINGS
    qtbot.waitUntil(lambda: bool(opening.node.commands), timeout=LIMIT_MS)


def test_a_theme_chosen_is_followed(qtbot: QtBot, running: Conductor, opening: FakeOpening) -> None:
    from app import theme

    happen(qtbot, running, opening, ev.SettingsChanged(settings=Settings(first_run_done=True, theme="dark")))
    assert theme.is_dark()
    happen(qtbot, running, opening, ev.SettingsChanged(settings=Settings(first_run_done=True)))


def test_a_second_start_shows_the_hidden_window(running: Conductor) -> None:
    running.window.hide()
    running.window.come_forward()
    assert running.window.isVisible()


def test_events_reach_the_screens(qtbot: QtBot, running: Conductor, opening: FakeOpening) -> None:
    happen(qtbot, running, opening, found(name="ben"))
    devices = running.window.view(DEVICES)
    assert devices is not None
    assert devices.findChildren(QPushButton, "pair")
    assert QApplication.instance() is not None


def page(conductor: Conductor) -> StartProblemPage | None:
    found = conductor.window.findChild(StartProblemPage)
    return found if isinstance(found, StartProblemPage) and found.isVisible() else None
