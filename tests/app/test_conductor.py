import gc
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QAbstractButton, QApplication
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.conductor import Conductor
from app.system.tray import Tray
from app.views.devices import DevicesView
from app.views.lifecycle import StartProblemPage
from app.views.view import View
from app.widgets.navigation import DEVICES, SCREENS, SETTINGS, TRAIN, ScreenEntry
from app.widgets.notice_bar import NoticeBar
from app.window import Window
from core.run.install_problems import wanted_here
from core.sweep.problems import cut_off
from core.vocabulary import events as ev
from core.vocabulary.commands import Install, Quit, ResumeSweep, StopRun
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.ids import RunId, SweepId
from core.vocabulary.phases import Failed, Finished, Phase, Stopped
from core.vocabulary.plan import Moment, Resumption, TrialOf
from core.vocabulary.progress import Diverged
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from tests.app import world
from tests.app.fake_opening import FakeOpening
from tests.app.laptops import BEN, PROBLEM, code_shown, consent_asked, found, pairing_began
from tests.app.seat import LIMIT_MS, Seat
from tests.core.fake_node import ME, OTHER, FakeNode, started


class Make(Protocol):
    def __call__(self, opening: FakeOpening, *, first_run: bool = False) -> Conductor: ...


class Plain(View):
    """Replaces the screens that are tested elsewhere."""

    title = "Plain"

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self.chosen: list[str] = []
        self.shows_live = 0

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        pass

    def train_example(self, name: str) -> None:
        self.chosen.append(name)

    def choose(self, path: str) -> None:
        self.chosen.append(path)

    def show_live(self) -> None:
        self.shows_live += 1


class PlainScreen(ScreenEntry):
    def load(self) -> type[Plain]:
        return Plain


PLAIN = [each if index in (DEVICES, SETTINGS) else PlainScreen(*each) for index, each in enumerate(SCREENS)]


@pytest.fixture
def quits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the program's exits, which would end the tests."""
    quits: list[int] = []
    monkeypatch.setattr(QApplication, "quit", staticmethod(lambda: quits.append(1)))
    return quits


@pytest.fixture
def make(qtbot: QtBot, quits: list[int]) -> Iterator[Make]:
    made: list[Conductor] = []

    def make(opening: FakeOpening, *, first_run: bool = False) -> Conductor:
        window = Window(SCREENS, first_run=first_run)
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
def seat(qtbot: QtBot, make: Make, opening: FakeOpening) -> Seat:
    """All screens are filled in and the node is running."""
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor.window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    return Seat(qtbot, conductor, opening)


def test_restarting_in_another_environment_ends_this_program_and_leaves_word_what_follows(
    seat: Seat, quits: list[int], tmp_path: Path
) -> None:
    devices = seat.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    for name in ("tandem-gui", "python"):
        (tmp_path / name).touch(0o755)
    devices.restart_asked.emit(tmp_path / "tandem")
    seat.qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert seat.window.next_program == (str(tmp_path / "tandem-gui"), "--home", "/home")


def test_this_window_stays_where_the_other_environment_is_gone(
    seat: Seat, quits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Problem | None] = []
    monkeypatch.setattr(seat.window, "tell", told.append)
    devices = seat.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    devices.restart_asked.emit(Path("/e/bin/tandem"))
    assert seat.window.next_program == () and not quits
    assert [problem.code for problem in told if problem is not None] == ["environment-gone"]


def test_nothing_is_restarted_in_the_middle_of_a_run(seat: Seat, quits: list[int]) -> None:
    seat.happen(*world.begun())
    devices = seat.window.view(DEVICES)
    assert isinstance(devices, DevicesView)
    assert not devices.environment.restart.isEnabled()
    devices.restart_asked.emit(Path("/e/bin/tandem"))
    assert seat.window.next_program == () and not quits


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


def test_an_incoming_pairing_brings_the_window_forward(seat: Seat) -> None:
    seat.window.hide()
    seat.happen(pairing_began(incoming=True), code_shown())
    assert seat.window.isVisible()
    assert seat.conductor.pairing.is_open


def test_a_question_brings_the_window_forward(seat: Seat) -> None:
    seat.window.showMinimized()
    seat.happen(consent_asked())
    assert seat.conductor.consent.is_open
    assert not seat.window.isMinimized()


@pytest.mark.parametrize("screen", range(len(SCREENS)))
def test_a_question_is_shown_wherever_its_user_is(seat: Seat, screen: int) -> None:
    seat.window.go_to(screen)
    seat.happen(consent_asked())
    for seen in (seat.conductor.consent.once, seat.conductor.consent.details.head):
        assert seen.isVisible()
        assert not seen.visibleRegion().isEmpty()
    assert seat.window.current == screen


def test_a_question_is_shown_over_the_first_steps_too(seat: Seat) -> None:
    seat.conductor._show_welcome()
    seat.qtbot.waitUntil(lambda: seat.conductor._welcome is not None, timeout=LIMIT_MS)
    seat.happen(consent_asked())
    assert seat.conductor.consent.details.head.isVisible()
    assert not seat.conductor.consent.details.head.visibleRegion().isEmpty()


def test_a_pairing_lies_over_a_question(seat: Seat) -> None:
    seat.happen(pairing_began(incoming=True), code_shown())
    seat.happen(consent_asked())
    siblings = seat.window.sheet_parent().children()
    assert siblings.index(seat.conductor.pairing) > siblings.index(seat.conductor.consent)


def test_a_question_takes_the_place_of_a_pairing_that_is_over(seat: Seat) -> None:
    seat.happen(pairing_began(incoming=True), code_shown(), ev.PairingEnded(device=BEN))
    pairing = seat.conductor.pairing
    assert pairing.is_open
    seat.happen(consent_asked())
    assert not seat.conductor.pairing.is_open
    assert seat.conductor.consent.is_open


def test_a_run_that_begins_here_unasked_is_announced_with_one_click_to_stop_it(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    badges: list[int] = []
    monkeypatch.setattr(seat.conductor.tray, "tell", lambda title, words: told.append(f"{title}: {words}"))
    monkeypatch.setattr("app.run_notices._badge", badges.append)
    seat.window.go_to(SETTINGS)
    seat.happen(*world.linked(), *world.begun(replace(world.plan(), starter=OTHER)))
    assert badges == [1], "on the program's icon"
    bar = seat.window.findChild(NoticeBar)
    assert bar is not None and bar.isVisible()
    offer = bar.findChild(QAbstractButton, "notice-offer")
    assert isinstance(offer, QAbstractButton) and offer.text() == "Stop"
    assert told == ["Training began here: Bob's laptop started digits.py on this laptop."]
    offer.click()
    seat.qtbot.waitUntil(lambda: StopRun() in seat.opening.node.commands, timeout=LIMIT_MS)
    seat.happen(*world.finished())
    assert not bar.isVisible() and badges[-1] == 0


def test_a_run_that_its_user_allowed_or_began_is_not_announced(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(seat.conductor.tray, "tell", lambda title, words: told.append(title))
    seat.happen(*world.linked(), *world.begun())
    asked = replace(world.plan(), run=consent_asked().run, starter=OTHER)
    seat.happen(*world.finished(), consent_asked(), ev.RunPlanned(plan=asked))
    assert "Training began here" not in told


def test_whoever_allows_a_run_is_led_to_it_once(seat: Seat) -> None:
    train = seat.window.view(TRAIN)
    assert isinstance(train, Plain)
    seat.window.go_to(SETTINGS)
    for run, answer in ((RunId("refused"), "no"), (RunId("allowed"), "once")):
        seat.happen(*world.linked(), consent_asked(run=run))
        sheet = seat.conductor.consent
        pressed = sheet.no if answer == "no" else sheet.once
        seat.qtbot.waitUntil(pressed.isEnabled, timeout=LIMIT_MS)
        pressed.click()
        seat.happen(ev.ConsentSettled(run=run, allowed=answer == "once"))
        assert (seat.window.current, train.shows_live) == (SETTINGS, 0), "it has not begun"
        plan = replace(world.plan(), run=run, starter=OTHER)
        seat.happen(ev.RunPlanned(plan=plan))
        if answer == "once":
            assert (seat.window.current, train.shows_live) == (TRAIN, 1)
            seat.window.go_to(SETTINGS)
            seat.happen(ev.RunPlanned(plan=plan))  # with the ports
        assert seat.window.current == SETTINGS
        seat.happen(ev.RunPhaseChanged(run=run, phase=Stopped(by="ben")))


def test_a_laptop_that_is_back_in_a_run_is_not_told_that_one_began(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    said: list[Problem] = []
    monkeypatch.setattr(seat.conductor.tray, "tell", lambda title, words: told.append(title))
    monkeypatch.setattr(seat.window, "tell", lambda problem, offer=None: said.extend(filter(None, [problem])))
    first = replace(world.plan(), starter=OTHER)
    seat.happen(*world.linked(), *world.begun(first))
    assert told.pop() == "Training began here"
    own = first.member(ME).name
    lost, goes_on = Failed(problem=PROBLEM), Stopped(by="bob", goes_on=True)
    cases: tuple[tuple[tuple[str, ...], Phase, str], ...] = (
        ((own,), lost, "This laptop is back in Bob's laptop's run of digits.py."),
        (("cleo",), lost, "Bob's laptop goes on with digits.py, with this laptop."),
        ((), goes_on, "Bob's laptop goes on with digits.py, with this laptop."),
        ((), lost, "Bob's laptop resumed digits.py on this laptop."),
    )
    for number, (back, last, says) in enumerate(cases):
        resumed = Resumption(run=first.run, checkpoint=first.project, moment=Moment(step=1), back=back)
        seat.happen(ev.RunPhaseChanged(run=first.run, phase=last))
        first = replace(first, run=RunId(f"again{number}"), resume=resumed)
        seat.happen(ev.RunPlanned(plan=first))
        assert said[-1].what == says
        was_begun = says.endswith("on this laptop.")
        assert ("Training began here" in told) == ("You were not asked" in said[-1].fix) == was_begun


def test_the_trials_of_a_sweep_are_announced_once(seat: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(seat.conductor.tray, "tell", lambda title, words: told.append(title))
    seat.happen(*world.linked())
    for number in (1, 2):
        place = TrialOf(sweep=SweepId("s"), number=number, trials=2, argument_sets=((),))
        trial = replace(world.plan(), run=RunId(f"run{number}"), starter=OTHER, trial=place)
        seat.happen(ev.RunPlanned(plan=trial))
        seat.happen(ev.RunPhaseChanged(run=trial.run, phase=Stopped(by="anna")))
    assert told.count("Training began here") == 1


def test_a_loss_that_becomes_nan_is_reported_at_once_and_once(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(seat.conductor.tray, "tell", lambda title, words: told.append(f"{title} ({words})"))
    seat.window.go_to(SETTINGS)
    seat.happen(*world.linked(), *world.begun())
    for step in (700, 701):
        lost = replace(world.progress(step), diverged=Diverged(value="NaN", epoch=30, step=700))
        seat.happen(world.progressed(ME, lost))
    assert told == ["Loss became NaN in epoch 31 (digits.py)"]
    bar = seat.window.findChild(NoticeBar)
    assert bar is not None and bar.isVisible()
    seat.window.go_to(TRAIN)
    assert not bar.isVisible()


def test_closing_an_idle_window_ends_the_node_and_the_program(seat: Seat, quits: list[int]) -> None:
    seat.window.close()
    assert not seat.window.isVisible()
    seat.qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert seat.opening.closed == 1
    assert seat.opening.node.commands == []


def test_closing_while_training_asks_first(seat: Seat, quits: list[int]) -> None:
    seat.happen(*world.begun())
    seat.window.close()
    assert seat.window.isVisible()
    assert seat.conductor.shutdown.is_open
    seat.conductor.shutdown.stay.click()
    assert not seat.window.isVisible()
    assert seat.opening.closed == 0
    assert quits == []


def test_a_run_that_ends_in_the_background_brings_the_window_back_where_no_tray_can(seat: Seat) -> None:
    seat.happen(*world.begun())
    seat.window.close()
    assert not seat.conductor.tray.there, "this desktop has none"
    assert "starting Tandem again brings it back" in seat.conductor.shutdown.words.text()
    seat.conductor.shutdown.stay.click()
    seat.happen(found(name="ben"))
    assert not seat.window.isVisible(), "it stays away as long as the run goes on"
    seat.happen(world.phase(Finished()))
    assert seat.window.isVisible()


def test_with_a_tray_the_window_stays_away_until_it_is_asked_for(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tray, "there", True)
    seat.happen(*world.begun())
    seat.window.close()
    assert "icon in the tray brings it back" in seat.conductor.shutdown.words.text()
    seat.conductor.shutdown.stay.click()
    seat.happen(world.phase(Finished()))
    assert not seat.window.isVisible()
    seat.conductor.tray.open_asked.emit()
    assert seat.window.isVisible()


def test_a_node_that_is_lost_in_the_background_is_said(seat: Seat) -> None:
    seat.happen(*world.begun())
    seat.window.close()
    seat.conductor.shutdown.stay.click()
    seat.opening.lose(PROBLEM)
    seat.qtbot.waitUntil(lambda: page(seat.conductor) is not None, timeout=LIMIT_MS)


def test_stop_and_quit_stops_the_run_and_ends(seat: Seat, quits: list[int]) -> None:
    seat.happen(*world.begun())
    seat.window.close()
    seat.conductor.shutdown.quit.click()
    seat.qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert seat.opening.node.commands == [StopRun()]
    assert seat.opening.closed == 1


def test_when_the_system_ends_the_window_the_others_go_on_with_its_run(seat: Seat, quits: list[int]) -> None:
    seat.happen(*world.begun())
    seat.conductor.quit(leaves=True)
    seat.qtbot.waitUntil(lambda: bool(quits), timeout=LIMIT_MS)
    assert seat.opening.node.commands == [Quit(leaves=True)]
    assert seat.opening.closed == 1


def test_a_run_of_another_process_goes_on_when_the_window_closes(
    qtbot: QtBot, make: Make, quits: list[int]
) -> None:
    opening = settled()
    opening.own = False
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    Seat(qtbot, conductor, opening).happen(*world.begun())
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
    assert shown.again.text() == "Starting…" and not shown.again.isEnabled()
    qtbot.waitUntil(conductor.window.navigation.isVisible, timeout=LIMIT_MS)
    assert opening.opened == 1


def test_who_tries_again_before_the_last_node_has_ended_gets_another_one(
    qtbot: QtBot, make: Make, opening: FakeOpening, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicked, really_end = threading.Event(), Bridge.end

    def end(bridge: Bridge) -> None:
        assert clicked.wait(LIMIT_MS / 1000)
        really_end(bridge)

    monkeypatch.setattr(Bridge, "end", end)
    opening.problem = PROBLEM
    conductor = make(opening)
    qtbot.waitUntil(lambda: page(conductor) is not None, timeout=LIMIT_MS)
    shown = page(conductor)
    assert shown is not None
    opening.problem = None
    shown.again.click()
    clicked.set()
    qtbot.waitUntil(conductor.window.navigation.isVisible, timeout=LIMIT_MS)
    assert opening.opened == 1


def test_a_node_that_is_lost_is_said_in_the_screens_place(seat: Seat) -> None:
    seat.opening.lose(PROBLEM)
    seat.qtbot.waitUntil(lambda: page(seat.conductor) is not None, timeout=LIMIT_MS)
    shown = page(seat.conductor)
    assert shown is not None
    seat.opening.node = FakeNode()
    shown.again.click()
    seat.qtbot.waitUntil(seat.window.navigation.isVisible, timeout=LIMIT_MS)


@pytest.mark.parametrize(
    "events", [(pairing_began(incoming=True), code_shown()), (consent_asked(),), tuple(world.begun())]
)
def test_a_node_that_is_lost_leaves_no_question_over_the_page(
    seat: Seat, events: tuple[ev.Event, ...]
) -> None:
    seat.happen(*events)
    if seat.conductor.bridge.state.busy:
        seat.window.close()
    sheets = (seat.conductor.pairing, seat.conductor.consent, seat.conductor.shutdown)
    assert any(sheet.is_open for sheet in sheets)
    seat.opening.lose(PROBLEM)
    seat.qtbot.waitUntil(lambda: page(seat.conductor) is not None, timeout=LIMIT_MS)
    assert not any(sheet.is_open for sheet in sheets)


def test_a_node_ended_from_elsewhere_is_said_too(seat: Seat) -> None:
    seat.happen(ev.NodeStopped())
    seat.qtbot.waitUntil(lambda: page(seat.conductor) is not None, timeout=LIMIT_MS)


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
    """The other laptop pressed Train: whoever allows it sees the training."""
    opening = settled(first_run_done=False)
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor._welcome is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    Seat(qtbot, conductor, opening).happen(*world.begun())
    qtbot.waitUntil(lambda: conductor._welcome is None, timeout=LIMIT_MS)
    assert conductor.window.current == TRAIN
    assert conductor.window.navigation.isVisible()


def test_in_the_first_steps_the_news_of_a_pairing_closes_by_itself(qtbot: QtBot, make: Make) -> None:
    opening = settled(first_run_done=False)
    conductor = make(opening)
    qtbot.waitUntil(lambda: conductor._welcome is not None, timeout=LIMIT_MS)
    began = ev.PairingBegan(incoming=False, name="Ben", address="", device=OTHER)
    Seat(qtbot, conductor, opening).happen(
        began, ev.PairingCodeShown(device=OTHER, name="Ben", code="123456")
    )
    assert conductor.pairing.is_open
    Seat(qtbot, conductor, opening).happen(
        ev.DevicePaired(device=OTHER, name="Ben"), ev.PairingEnded(device=OTHER)
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


def test_looking_for_the_cause_leads_to_the_doctor(seat: Seat) -> None:
    devices = seat.window.view(DEVICES)
    assert devices is not None
    devices.doctor_asked.emit()  # type: ignore[attr-defined]
    assert seat.window.current == SETTINGS
    seat.qtbot.waitUntil(lambda: bool(seat.opening.node.commands), timeout=LIMIT_MS)


def test_a_sweep_that_was_cut_off_goes_on_by_a_click(seat: Seat) -> None:
    seat.happen(ev.NoticeRaised(problem=cut_off("train.py", "s1")))
    bar = seat.window.findChild(NoticeBar)
    assert bar is not None
    offer = bar.findChild(QAbstractButton, "notice-offer")
    assert isinstance(offer, QAbstractButton) and offer.text() == "Resume"
    offer.click()
    wanted = ResumeSweep(sweep=SweepId("s1"))
    seat.qtbot.waitUntil(lambda: wanted in seat.opening.node.commands, timeout=LIMIT_MS)


def test_what_another_laptop_asks_to_install_is_installed_by_a_click(seat: Seat) -> None:
    seat.window.hide()
    asked = wanted_here("Bob", OTHER, ("pandas==2.3.1", "nltk"), "pip install")
    seat.happen(ev.NoticeRaised(problem=asked))
    assert seat.window.isVisible()
    bar = seat.window.findChild(NoticeBar)
    assert bar is not None
    assert "Bob asks to install pandas==2.3.1 and nltk here" in seat.notices[0]
    offer = bar.findChild(QAbstractButton, "notice-offer")
    assert isinstance(offer, QAbstractButton) and offer.text() == "Install"
    assert not seat.opening.node.commands
    offer.click()
    wanted = Install(device=OTHER, packages=("pandas==2.3.1", "nltk"))
    seat.qtbot.waitUntil(lambda: wanted in seat.opening.node.commands, timeout=LIMIT_MS)


def test_the_no_to_an_install_goes_to_the_laptop_that_asked(seat: Seat) -> None:
    asked = wanted_here("Bob", OTHER, ("nltk",), "pip install")
    seat.happen(ev.NoticeRaised(problem=asked))
    bar = seat.window.findChild(NoticeBar)
    assert bar is not None
    refuse = bar.findChild(QAbstractButton, "dismiss")
    assert isinstance(refuse, QAbstractButton) and refuse.text() == "No"
    refuse.click()
    assert bar.isHidden()
    wanted = Install(device=OTHER, packages=("nltk",), allowed=False)
    seat.qtbot.waitUntil(lambda: wanted in seat.opening.node.commands, timeout=LIMIT_MS)
    assert not any(isinstance(each, Install) and each.allowed for each in seat.opening.node.commands)


def test_a_theme_chosen_is_followed(seat: Seat) -> None:
    from app import theme

    seat.happen(ev.SettingsChanged(settings=Settings(first_run_done=True, theme="dark")))
    assert theme.is_dark()
    seat.happen(ev.SettingsChanged(settings=Settings(first_run_done=True)))


def page(conductor: Conductor) -> StartProblemPage | None:
    found = conductor.window.findChild(StartProblemPage)
    return found if isinstance(found, StartProblemPage) and found.isVisible() else None
