"""What a screen reader announces, from the first digits to a run's end, and the names of widgets."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent
from PySide6.QtWidgets import QAbstractScrollArea, QAbstractSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.conductor import Conductor
from app.views.train import TrainView
from app.views.welcome import WelcomeView
from app.widgets.navigation import DEVICES, SETTINGS, TRAIN
from app.window import Window
from app.words import spoken
from core.vocabulary import events as ev
from core.vocabulary.answers import RequestFile, RequestRead
from core.vocabulary.phases import Failed, Finished, Stopped
from core.vocabulary.waits import WaitsFor
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.app.fake_opening import FakeOpening
from tests.app.laptops import BEN, PROBLEM, RUN, code_shown, consent_asked, pairing_began
from tests.core.fake_node import ME, OTHER

LIMIT_MS = 60_000
Said = list[tuple[str, bool]]


def said_of(core: FakeCore, *events: ev.Event) -> Said:
    """Announcements of one batch."""
    core.happen(*events)
    return spoken.News().of(events, core.state)


def test_pairing_is_said_with_the_digits_one_by_one(core: FakeCore) -> None:
    said = said_of(core, pairing_began(), code_shown("408355"))
    assert said == [("Pairing with ben. The digits are 4 0 8 3 5 5. Does ben show the same?", True)]
    paired = (ev.DevicePaired(device=BEN, name="ben"), ev.PairingEnded(device=BEN))
    assert said_of(core, *paired) == [("Paired with ben.", False)]
    ((words, urgent),) = said_of(core, pairing_began(), ev.PairingEnded(problem=PROBLEM))
    assert urgent and PROBLEM.what in words and PROBLEM.fix in words


def test_a_request_interrupts_what_is_being_read(core: FakeCore) -> None:
    assert said_of(core, consent_asked(changed=True)) == [
        (
            "ben wants to run train.py on this laptop: 2 files, 5.2 MB. "
            "It differs from what you allowed before.",
            True,
        )
    ]


def test_a_run_is_said_from_the_question_to_its_end(core: FakeCore) -> None:
    core.happen(*world.linked(name="ben"))
    consent = ev.MemberPhaseChanged(run=world.RUN, device=OTHER, phase="consent")
    words = [words for words, _ in said_of(core, *world.begun()[:2], consent)]
    assert words == ["here started a run of digits.py.", "Waiting for someone to press Allow on ben."]
    assert said_of(core, *world.begun()[2:]) == [("digits.py trains.", False)]
    assert said_of(core, world.phase(Finished())) == [("digits.py finished.", False)]


def test_a_runs_start_is_said_once_however_often_its_plan_is_reported(core: FakeCore) -> None:
    core.happen(*world.linked(name="ben"))
    news, planned_anew = spoken.News(), world.begun()[0]
    assert isinstance(planned_anew, ev.RunPlanned)
    said = []
    for events in (world.begun(), (planned_anew,), (planned_anew, planned_anew)):
        core.happen(*events)
        said += [words for words, _ in news.of(events, core.state)]
    assert [words for words in said if "started a run" in words] == ["here started a run of digits.py."]


def test_that_a_laptop_was_lost_is_said_with_the_reason(core: FakeCore) -> None:
    core.happen(*world.linked(name="ben"), *world.begun())
    left = ev.MemberLeft(run=world.RUN, device=OTHER, problem=PROBLEM)
    assert said_of(core, left) == [(f"ben was lost: {PROBLEM.what} here goes on alone.", False)]


@pytest.mark.parametrize(
    ("last", "words", "urgent"),
    [
        (Stopped(by="ben"), "digits.py was stopped on ben.", False),
        (Failed(problem=PROBLEM), f"digits.py failed. {PROBLEM.what} {PROBLEM.fix}", True),
    ],
)
def test_an_end_before_its_time_is_said_with_its_reason(
    core: FakeCore, last: Stopped | Failed, words: str, urgent: bool
) -> None:
    core.happen(*world.begun())
    assert said_of(core, world.phase(last)) == [(words, urgent)]


def test_a_wait_is_printed_once_not_every_few_seconds(core: FakeCore) -> None:
    core.happen(*world.linked(name="ben"), *world.begun())
    news = spoken.News()
    said = []
    for lasted_s in (4.0, 8.0, 12.0):
        wait = WaitsFor(device=OTHER, cause="stopped", lasted_s=lasted_s)
        event = ev.WaitingChanged(run=world.RUN, waits=(wait,))
        core.happen(event)
        said += news.of((event,), core.state)
    assert len(said) == 1
    assert "ben" in said[0][0]


def test_numbers_that_change_all_the_time_are_not_said(core: FakeCore) -> None:
    core.happen(*world.begun())
    assert not said_of(core, world.progressed(ME, world.progress(1)), world.told(ME, world.reading()))


def test_it_reaches_whatever_reads_the_screen(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, object]] = []

    def hear(event: QAccessibleEvent) -> None:
        assert isinstance(event, QAccessibleAnnouncementEvent)
        told.append((event.message(), event.politeness()))

    monkeypatch.setattr("app.words.spoken.QAccessible.updateAccessibility", hear)
    widget = QWidget()
    qtbot.addWidget(widget)
    spoken.announce(widget, "Paired\x1b[31m with ben.\u202e" + "x" * 1_000)
    spoken.announce(widget, "ben asks", urgent=True)
    levels = QAccessible.AnnouncementPoliteness
    assert told[0][0].startswith("Paired with ben.x")
    assert len(told[0][0]) == spoken.LONGEST
    assert [level for _, level in told] == [levels.Polite, levels.Assertive]


def test_the_window_says_what_happens(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr("app.conductor.announce", lambda widget, words, *, urgent: heard.append(words))
    for event in (pairing_began(), code_shown("408355"), consent_asked()):
        opening.happen(event)
    qtbot.waitUntil(lambda: len(heard) == 2, timeout=LIMIT_MS)
    assert heard[0].startswith("Pairing with ben.")
    assert heard[1].startswith("ben wants to run train.py")


# --- what things are called --------------------------------------------------------------------------------


def nameless(under: QWidget) -> list[str]:
    """Widgets that Tab reaches and a screen reader has no name for."""
    found = []
    for each in under.findChildren(QWidget):
        if not each.isVisible() or not each.focusPolicy() & Qt.FocusPolicy.TabFocus:
            continue
        around = each.parentWidget()
        if isinstance(around, QAbstractSpinBox) or (
            isinstance(around, QAbstractScrollArea) and around.viewport() is each
        ):
            continue  # Qt's own parts: the widget around them has the name
        face = QAccessible.queryAccessibleInterface(each)
        if face is None or not face.text(QAccessible.Text.Name).strip():
            found.append(f"{type(each).__name__} {each.objectName()}")
    return found


def test_everything_on_the_way_through_training_has_a_name(
    qtbot: QtBot, window: Window, core: FakeCore
) -> None:
    core.happen(*world.linked())
    for index in (DEVICES, SETTINGS, TRAIN):
        window.go_to(index)
        assert not nameless(window), index
    train = window.view(TRAIN)
    assert isinstance(train, TrainView)
    train.setup.choose("/home/ada/digits/digits.py")
    for fold in (train.setup.ready.more, train.setup.options, train.setup.roles.tf_config):
        fold.head.setChecked(True)
    qtbot.waitUntil(train.setup.train.isEnabled, timeout=LIMIT_MS)
    assert not nameless(window)
    train.setup.edited = False
    core.happen(*world.begun(), world.progressed(ME, world.progress(3)), world.logged(ME, "hello"))
    train.live.log.head.setChecked(True)
    qtbot.waitUntil(lambda: bool(train.live.charts.plots), timeout=LIMIT_MS)
    assert not nameless(window)
    names = [view.accessibleName() for view in train.live.progress.figures]
    assert names[0] == "Loss, this epoch 0.500"


def test_everything_on_the_way_through_pairing_has_a_name(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening
) -> None:
    for event in (pairing_began(), code_shown("408355")):
        opening.happen(event)
    qtbot.waitUntil(lambda: conductor.pairing.code.isVisible(), timeout=LIMIT_MS)
    assert not nameless(conductor.pairing)
    assert conductor.pairing.code.accessibleName() == "The digits are 4 0 8 3 5 5"


def test_everything_in_a_request_and_its_files_has_a_name(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening
) -> None:
    opening.happen(consent_asked())
    qtbot.waitUntil(lambda: conductor.consent.is_open, timeout=LIMIT_MS)
    assert not nameless(conductor.consent)
    files = (RequestFile(path="train.py", size=9, change="changed", text="a = 1", diff="-a\n+b"),)
    conductor.consent._on_read(RUN, RequestRead(run=RUN, files=files))
    assert conductor.consent.look.isVisible()
    assert not nameless(conductor.consent)


def test_everything_in_the_first_steps_has_a_name(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> None:
    view = WelcomeView(bridge)
    qtbot.addWidget(view)
    view.show_state(core.state, ())
    view.show()
    assert not nameless(view)
    view._go(1)
    assert not nameless(view)
    view.hide()
