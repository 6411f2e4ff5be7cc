"""Fixtures for the window's tests; Qt's own warnings fail a test (see pyproject.toml)."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.charts import loader
from app.conductor import Conductor
from app.system import collector
from app.widgets.navigation import SCREENS, SETTINGS
from app.window import Window
from core.vocabulary import events as ev
from core.vocabulary.answers import RunAccepted
from core.vocabulary.commands import AnalyseScript, PlanRun, StartRun
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.app.fake_opening import FakeOpening
from tests.app.seat import LIMIT_MS, Seat
from tests.app.stray_windows import StrayWindows
from tests.core.fake_node import started

# Plots are tested with what the program imports of pyqtgraph.
loader.import_pyqtgraph()


@pytest.fixture(autouse=True)
def garbage_stays_on_this_thread() -> Iterator[None]:
    """As in the program: widgets collected by another thread crash Qt."""
    collector.take_over()
    yield
    collector.look()
    gc.enable()


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
def window(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> Iterator[Window]:
    """Every screen, over a core that answers the Train screen's commands."""
    core.answers = {
        AnalyseScript: world.script_read(),
        PlanRun: world.planned,
        StartRun: RunAccepted(run=world.RUN),
    }
    window = Window(SCREENS)
    qtbot.addWidget(window, before_close_func=lambda window: setattr(window, "may_close", True))
    for index, screen in enumerate(SCREENS):
        window.fill(index, screen.load()(bridge), core.state)
    bridge.changed.connect(lambda events, state: window.show_state(state, events))
    window.show()
    yield window
    window.hide()


@pytest.fixture
def under(qtbot: QtBot) -> QWidget:
    """The widget under a sheet."""
    under = QWidget()
    qtbot.addWidget(under)
    under.resize(1000, 760)
    under.show()
    return under


@pytest.fixture
def opening() -> FakeOpening:
    opening = FakeOpening()
    done = ev.SettingsChanged(settings=Settings(first_run_done=True))
    opening.node.state = apply(apply(State(), started()), done)
    return opening


@pytest.fixture
def conductor(qtbot: QtBot, opening: FakeOpening, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conductor]:
    """The whole window with every screen filled in, over the node of ``opening``."""
    monkeypatch.setattr("app.conductor.QApplication.quit", staticmethod(lambda: None))
    window = Window(SCREENS)
    qtbot.addWidget(window, before_close_func=lambda window: setattr(window, "may_close", True))
    window.show()
    stray = StrayWindows()
    conductor = Conductor(window, opening)
    conductor.begin()
    qtbot.waitUntil(lambda: window.view(SETTINGS) is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: conductor.bridge.state.me is not None, timeout=LIMIT_MS)
    yield conductor
    if conductor.core is not None:
        conductor.core.ask_to_end()
        assert conductor.core.wait_ended(60)
    stray.end()
    assert stray.found == []
    gc.collect()


@pytest.fixture
def seat(qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> Seat:
    return Seat(qtbot, conductor, opening)
