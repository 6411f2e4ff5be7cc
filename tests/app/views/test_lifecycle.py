import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.views.lifecycle import ShutdownSheet


@pytest.fixture
def sheet(under: QWidget) -> ShutdownSheet:
    return ShutdownSheet(under)


@pytest.fixture
def asked(sheet: ShutdownSheet) -> list[str]:
    asked: list[str] = []
    sheet.stay_asked.connect(lambda: asked.append("stay"))
    sheet.quit_asked.connect(lambda: asked.append("quit"))
    return asked


@pytest.mark.parametrize(("tray", "back"), [(True, "tray"), (False, "starting Tandem again")])
def test_it_says_how_the_window_comes_back(sheet: ShutdownSheet, tray: bool, back: str) -> None:
    sheet.ask(tray)
    assert sheet.is_open
    assert back in sheet.words.text()


def test_to_stay_or_to_quit(sheet: ShutdownSheet, asked: list[str]) -> None:
    sheet.ask(True)
    sheet.stay.click()
    assert not sheet.is_open
    sheet.ask(True)
    sheet.quit.click()
    assert asked == ["stay", "quit"]


def test_cancel_and_escape_change_nothing(qtbot: QtBot, sheet: ShutdownSheet, asked: list[str]) -> None:
    sheet.ask(True)
    sheet.cancel.click()
    assert not sheet.is_open
    sheet.ask(True)
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.is_open
    assert asked == []


def test_every_button_has_room_for_its_words(sheet: ShutdownSheet) -> None:
    sheet.ask(True)
    sheet.layout().activate()  # type: ignore[union-attr]
    for made in (sheet.stay, sheet.quit, sheet.cancel):
        assert made.width() >= made.sizeHint().width()
