"""Choosing this laptop's data folders."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.settings import SettingsView
from core.vocabulary.answers import Done
from core.vocabulary.commands import ChangeSettings
from core.vocabulary.settings import SettingsChange
from tests.app.fake_core import FakeCore
from tests.app.seat import on_screen


def test_folders_are_saved_and_a_wrong_line_is_said(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> None:
    view = SettingsView(bridge)
    view.network._present = dict
    card = on_screen(qtbot, bridge, view).data
    core.answers[ChangeSettings] = Done()
    assert not card.save.isEnabled()
    card.folders.setText("photos")
    card.folders.textEdited.emit("photos")
    card.save.click()
    assert "NAME=PATH" in card.words.text() and card.words.isVisible() and not core.asked(ChangeSettings)
    card.folders.setText("photos=/data")
    card.folders.textEdited.emit("photos=/data")
    assert not card.words.isVisible()
    card.save.click()
    assert core.asked(ChangeSettings) == [ChangeSettings(change=SettingsChange(data={"photos": "/data"}))]
