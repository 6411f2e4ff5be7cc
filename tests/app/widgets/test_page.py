"""The frame of a screen."""

import shiboken6
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets.page import Page


def test_the_bar_shows_whether_there_is_more_though_pyside_dropped_its_object_of_it(qtbot: QtBot) -> None:
    page = Page("Runs")
    qtbot.addWidget(page)
    content = QWidget()
    page.add(content)
    page.resize(300, 300)
    page.show()
    assert not page.verticalScrollBar().isEnabled()
    shiboken6.invalidate(page.verticalScrollBar())
    content.setMinimumHeight(900)
    qtbot.waitUntil(lambda: page.verticalScrollBar().isEnabled())
