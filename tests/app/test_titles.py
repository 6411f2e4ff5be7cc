"""Long names and titles are elided, with the whole text as their tooltip; nothing is just cut off."""

from __future__ import annotations

import html

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.conductor import Conductor
from app.views.runs import RunsView
from app.views.train import TrainView
from app.widgets.labels import ElidedLabel
from app.widgets.navigation import RUNS, SCREENS, TRAIN
from core.vocabulary.phases import Stopped
from tests.app import world
from tests.app.fake_opening import FakeOpening
from tests.core.fake_node import OTHER

LIMIT_MS = 60_000
SCRIPT = f"{'a_very_long_name_of_a_script_' * 4}.py"
NAME = "The laptop of somebody with a very long name " * 2


def cut(inside: QWidget) -> list[str]:
    """Text that is cut off without an ellipsis."""
    return [
        label.text()
        for label in inside.findChildren(QLabel)
        if label.isVisible()
        and not label.wordWrap()
        and label.fontMetrics().horizontalAdvance(label.text()) > label.width()
    ]


@pytest.mark.parametrize("width", [720, 1120])
def test_no_screen_cuts_words_off(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening, width: int
) -> None:
    window = conductor.window
    window.resize(width, 600)
    plan = replace(world.plan(script=SCRIPT), starter=OTHER)
    for event in (*world.linked(name=NAME), *world.begun(plan)):
        opening.happen(event)
    train, runs = window.view(TRAIN), window.view(RUNS)
    assert isinstance(train, TrainView)
    assert isinstance(runs, RunsView)
    window.go_to(TRAIN)
    qtbot.waitUntil(lambda: train.live.progress.state.text() == "Training", timeout=LIMIT_MS)
    for index in range(len(SCREENS)):
        window.go_to(index)
        qtbot.wait(1)
        view = window.view(index)
        assert view is not None
        assert not cut(view), view.title
    entry = world.entry(script=SCRIPT, last=Stopped(by=NAME), devices=(NAME, NAME))
    runs.past.show_runs([world.details(entry, steps=3)], conductor.bridge.state)
    window.go_to(RUNS)
    runs.pages.setCurrentWidget(runs.past)
    qtbot.wait(1)
    assert not cut(runs)


def test_a_title_that_does_not_fit_says_so(qtbot: QtBot, conductor: Conductor, opening: FakeOpening) -> None:
    window = conductor.window
    window.resize(720, 600)
    window.go_to(TRAIN)
    for event in world.begun(world.plan(script=SCRIPT)):
        opening.happen(event)
    train = window.view(TRAIN)
    assert isinstance(train, TrainView)
    title = train.live.page.title
    qtbot.waitUntil(title.isVisible, timeout=LIMIT_MS)
    assert isinstance(title, ElidedLabel)
    assert title.text() == SCRIPT
    qtbot.waitUntil(lambda: title.elided, timeout=LIMIT_MS)
    assert title.toolTip() == f"<p>{html.escape(SCRIPT)}</p>"
    assert train.live.stop.width() >= train.live.stop.sizeHint().width(), (
        "the title leaves room for the button"
    )
