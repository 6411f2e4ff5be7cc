"""A user in front of the whole window, or of one of its screens."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.conductor import Conductor
from app.views.view import View
from core.vocabulary import events as ev
from core.vocabulary.state import apply
from tests.app.fake_opening import FakeOpening

LIMIT_MS = 60_000
V = TypeVar("V", bound=QWidget)
S = TypeVar("S", bound=View)


def on_screen(qtbot: QtBot, bridge: Bridge, view: S, width: int = 900, height: int = 700) -> S:
    """A single screen that follows the node."""
    qtbot.addWidget(view)
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    view.show_state(bridge.state, ())
    view.resize(width, height)
    view.show()
    return view


class Seat:
    def __init__(self, qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> None:
        self.qtbot, self.conductor, self.opening = qtbot, conductor, opening
        self.window = conductor.window

    def happen(self, *events: ev.Event) -> None:
        """Returns after the window has heard of all of them."""
        wanted = self.opening.node.state
        for event in events:
            wanted = apply(wanted, event)
            self.opening.happen(event)
        self.qtbot.waitUntil(lambda: self.conductor.bridge.state == wanted, timeout=LIMIT_MS)

    def view(self, index: int, kind: type[V]) -> V:
        """Brings a screen to the front and returns it."""
        self.window.go_to(index)
        view = self.window.view(index)
        assert isinstance(view, kind)
        self.qtbot.waitUntil(view.isVisible, timeout=LIMIT_MS)
        return view

    def press(self, key: Qt.Key) -> None:
        self.qtbot.keyClick(QApplication.focusWidget() or self.window, key)

    @property
    def notices(self) -> list[str]:
        """The notices above the screens."""
        bar = self.window._notices
        if bar is None or not bar.isVisible():
            return []
        return [str(box.problem) for box in bar._boxes if box.problem is not None]
