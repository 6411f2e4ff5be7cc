"""Choosing how long other laptops' files stay, and clearing them after a question."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.settings import SettingsView
from core.vocabulary.answers import Cleared, Done, Refused, StorageMeasured
from core.vocabulary.commands import ChangeSettings, Clear, MeasureStorage
from core.vocabulary.settings import SettingsChange
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM
from tests.app.seat import on_screen

MEASURED = StorageMeasured(
    projects_bytes=1_500_000_000,
    data_bytes=2_000_000_000,
    runs_bytes=3_000_000,
    reports_bytes=4_000,
    own_bytes=600_000_000,
)
NOTHING = StorageMeasured(projects_bytes=0, data_bytes=0, runs_bytes=0, reports_bytes=0, own_bytes=0)


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge) -> SettingsView:
    view = SettingsView(bridge)
    view.network._present = dict
    return on_screen(qtbot, bridge, view)


def press(view: SettingsView, name: str) -> None:
    (found,) = (each for each in view.storage.findChildren(QPushButton, name) if each.isVisible())
    found.click()


def listed(view: SettingsView) -> list[str]:
    return [label.text() for label in view.storage.sizes if label.isVisible()]


def test_days_and_size_are_shown_and_saved(view: SettingsView, core: FakeCore) -> None:
    card = view.storage
    core.answers[ChangeSettings] = Done()
    core.commands.clear()
    assert (card.days.value(), card.gigabytes.value()) == (30, 10) and not card.save.isEnabled()
    card.days.setValue(7)
    card.save.click()
    core.flush()
    assert core.commands == [ChangeSettings(change=SettingsChange(keep_days=7, keep_gb=10)), MeasureStorage()]


def test_a_refused_choice_is_taken_back(view: SettingsView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    view.storage.gigabytes.setValue(1)
    view.storage.save.click()
    core.flush()
    assert view.storage.gigabytes.value() == 10 and view.problem.problem == PROBLEM


def test_the_size_of_each_kind_is_shown_when_the_screen_comes_to_the_front(
    view: SettingsView, core: FakeCore
) -> None:
    assert core.commands == [MeasureStorage()]
    core.answers[MeasureStorage] = MEASURED
    view.hide()
    view.show()
    core.flush()
    assert listed(view) == [
        "1.5 GB: Projects of other laptops, and files that came in part",
        "2 GB: Data of other laptops",
        "3 MB: Files of other laptops' runs: outputs, checkpoints, logs",
        "4 kB: Reports from other laptops",
        "600 MB: Outputs of your own runs, in folders outputs-left",
    ]


def test_everything_is_cleared_after_a_question(view: SettingsView, core: FakeCore) -> None:
    core.answers[Clear] = Cleared(freed_bytes=3_000_000)
    core.answers[MeasureStorage] = MEASURED
    press(view, "clear")
    core.flush()
    assert core.asked(Clear) == [], "it is asked first"
    said = view.storage.words.text()
    assert said.startswith("This removes everything listed above.") and "own runs" in listed(view)[-1]
    core.answers[MeasureStorage] = NOTHING
    press(view, "keep-files")
    assert view.storage.words.text() == ""
    press(view, "clear")
    press(view, "really-clear")
    core.flush()
    assert core.asked(Clear) == [Clear()] and view.storage.words.text() == "Freed 3 MB."
    assert listed(view) == ["Nothing is stored."]
    assert view.storage.clear.isVisible() and not view.storage.clear.isEnabled(), "there is nothing to clear"
    view.storage.show_measured(MEASURED)
    assert view.storage.clear.isEnabled()


def test_a_refusal_is_said(view: SettingsView, core: FakeCore) -> None:
    core.answers[Clear] = Refused(problem=PROBLEM)
    press(view, "clear")
    press(view, "really-clear")
    core.flush()
    assert view.storage.words.text() == str(PROBLEM)
