"""Choosing how long other laptops' files stay, and clearing them after a question."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.settings import SettingsView
from core.vocabulary.answers import Cleared, Done, Refused
from core.vocabulary.commands import ChangeSettings, Clear
from core.vocabulary.settings import SettingsChange
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM
from tests.app.seat import on_screen


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge) -> SettingsView:
    view = SettingsView(bridge)
    view.network._present = dict
    return on_screen(qtbot, bridge, view)


def press(view: SettingsView, name: str) -> None:
    (found,) = (each for each in view.storage.findChildren(QPushButton, name) if each.isVisible())
    found.click()


def test_days_and_size_are_shown_and_saved(view: SettingsView, core: FakeCore) -> None:
    card = view.storage
    core.answers[ChangeSettings] = Done()
    assert (card.days.value(), card.gigabytes.value()) == (30, 10) and not card.save.isEnabled()
    card.days.setValue(7)
    card.save.click()
    assert core.commands == [ChangeSettings(change=SettingsChange(keep_days=7, keep_gb=10))]


def test_a_refused_choice_is_taken_back(view: SettingsView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    view.storage.gigabytes.setValue(1)
    view.storage.save.click()
    core.flush()
    assert view.storage.gigabytes.value() == 10 and view.problem.problem == PROBLEM


def test_everything_is_cleared_after_a_question(view: SettingsView, core: FakeCore) -> None:
    core.answers[Clear] = Cleared(freed_bytes=3_000_000)
    press(view, "clear")
    assert core.commands == [], "it is asked first"
    press(view, "keep-files")
    press(view, "clear")
    press(view, "really-clear")
    core.flush()
    assert core.commands == [Clear()] and view.storage.words.text() == "Freed 3 MB."
    assert view.storage.clear.isEnabled() and view.storage.clear.isVisible()


def test_a_refusal_is_said(view: SettingsView, core: FakeCore) -> None:
    core.answers[Clear] = Refused(problem=PROBLEM)
    press(view, "clear")
    press(view, "really-clear")
    core.flush()
    assert view.storage.words.text() == str(PROBLEM)
