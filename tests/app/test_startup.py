"""Each screen is made over several turns of the event loop, and styled piece by piece."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app import startup, theme
from app.bridge import Bridge
from app.long_work import Turns
from app.views.view import View
from app.widgets.navigation import SCREENS, ScreenEntry
from tests.app.fake_core import FakeCore

LIMIT_MS = 60_000
each_screen = pytest.mark.parametrize("screen", SCREENS, ids=[screen.name for screen in SCREENS])


@each_screen
def test_a_screen_comes_last_of_its_turns(
    qtbot: QtBot, bridge: Bridge, core: FakeCore, screen: ScreenEntry
) -> None:
    *turns, view = screen.load().in_turns(bridge)
    assert isinstance(view, screen.load())
    qtbot.addWidget(view)
    assert set(turns) <= {None}


@each_screen
def test_each_piece_of_a_screen_is_styled_once_before_the_screen_is_handed_over(
    qtbot: QtBot,
    bridge: Bridge,
    core: FakeCore,
    monkeypatch: pytest.MonkeyPatch,
    screen: ScreenEntry,
) -> None:
    worn: list[QWidget] = []
    made: list[tuple[View, list[QWidget]]] = []
    monkeypatch.setattr(theme, "wear", worn.append)
    owner = QObject()
    startup.make(screen, bridge, Turns(owner), lambda view: made.append((view, list(worn))))
    qtbot.waitUntil(lambda: bool(made), timeout=LIMIT_MS)
    [(view, worn_before)] = made
    qtbot.addWidget(view)
    assert isinstance(view, screen.load())
    for piece in view.pieces:
        assert worn_before.count(piece) == 1
