"""What tests of the window share; Qt's own warnings fail a test (see pyproject.toml)."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.conductor import Conductor
from app.screens import SCREENS, SETTINGS
from app.window import Window
from core.vocabulary import events as ev
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from tests.app.fake_core import FakeCore
from tests.app.fake_opening import FakeOpening
from tests.core.fake_node import started

LIMIT_MS = 60_000


@pytest.fixture
def bridge(qapp: object) -> Bridge:
    return Bridge()


@pytest.fixture
def core(bridge: Bridge) -> FakeCore:
    """A core whose node has started: this laptop is called "here" and knows no other yet."""
    core = FakeCore(bridge)
    core.happen(started())
    return core


@pytest.fixture
def opening() -> FakeOpening:
    opening = FakeOpening()
    done = ev.SettingsChanged(settings=Settings(first_run_done=True))
    opening.node.state = apply(apply(State(), started()), done)
    return opening


@pytest.fixture
def conductor(qtbot: QtBot, opening: FakeOpening, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conductor]:
    """The whole window, every screen filled in, over what ``opening`` gives it."""
    monkeypatch.setattr("app.conductor.QApplication.quit", staticmethod(lambda: None))
    window = Window(tuple(screen.entry for screen in SCREENS))
    qtbot.addWidget(window, before_close_func=lambda window: setattr(window, "may_close", True))
    window.show()
    conductor = Conductor(window, opening)
    conductor.begin()
    qtbot.waitUntil(lambda: window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    yield conductor
    if conductor.core is not None:
        conductor.core.ask_to_end()
        assert conductor.core.wait_ended(60)
    gc.collect()
