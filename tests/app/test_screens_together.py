"""The real screens in one window, over a node with nothing behind it."""

from itertools import pairwise

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.conductor import Conductor
from app.screens import MACHINES, RUNS, SCREENS, TRAIN
from app.views.runs import RunsView
from app.views.train import TrainView
from core.vocabulary.commands import AnalyseScript, StartRun
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Moment, RunSpec
from tests.app import world
from tests.app.fake_opening import FakeOpening
from tests.core.fake_node import ME, OTHER

LIMIT_MS = 60_000


def test_a_run_can_be_followed_on_every_screen(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening
) -> None:
    window = conductor.window
    for event in (*world.linked(), *world.begun()):
        opening.happen(event)
    train = window.view(TRAIN)
    assert isinstance(train, TrainView)
    qtbot.waitUntil(lambda: train.pages.currentWidget() is train.live, timeout=LIMIT_MS)
    for index in (TRAIN, MACHINES, RUNS, TRAIN):
        window.go_to(index)
        opening.happen(world.told(ME, world.reading()))
        opening.happen(world.progressed(ME, world.progress(index)))
        opening.happen(world.progressed(OTHER, world.progress(index)))
        reached = index
        qtbot.waitUntil(
            lambda reached=reached: (  # type: ignore[misc]
                (run := conductor.bridge.state.run) is not None
                and (progress := run.members[OTHER].progress) is not None
                and progress.step == reached
            ),
            timeout=LIMIT_MS,
        )
        window.grab()
    qtbot.waitUntil(lambda: train.live.charts.redraws > 0, timeout=LIMIT_MS)
    for event in world.finished():
        opening.happen(event)
    qtbot.waitUntil(train.live.outcome.isVisible, timeout=LIMIT_MS)


def test_run_again_leads_from_the_history_to_train(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening
) -> None:
    runs = conductor.window.view(RUNS)
    assert isinstance(runs, RunsView)
    conductor.window.go_to(RUNS)
    runs.again_asked.emit(world.entry())
    train = conductor.window.view(TRAIN)
    assert train is not None
    qtbot.waitUntil(train.isVisible, timeout=LIMIT_MS)
    wanted = AnalyseScript(path="/home/ada/digits/digits.py")
    qtbot.waitUntil(lambda: wanted in opening.node.commands, timeout=LIMIT_MS)


def test_going_on_with_a_past_run_starts_it_and_leads_to_train(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening
) -> None:
    for event in world.linked():
        opening.happen(event)
    qtbot.waitUntil(lambda: OTHER in conductor.bridge.state.devices, timeout=LIMIT_MS)
    runs = conductor.window.view(RUNS)
    assert isinstance(runs, RunsView)
    conductor.window.go_to(RUNS)
    spec = RunSpec(script="/home/ada/digits/digits.py", seed=7)
    entry = world.entry(spec=spec, last=Stopped(by="here"), folder="/runs/1")
    moment = Moment(step=70, epoch=3, batch=1)
    runs.past.show_runs([replace(world.details(entry, steps=3), checkpoint=moment)], conductor.bridge.state)
    runs.pages.setCurrentWidget(runs.past)
    runs.past.outcome.go_on.click()
    wanted = StartRun(spec=replace(spec, devices=(OTHER,), resume=entry.run))
    qtbot.waitUntil(lambda: wanted in opening.node.commands, timeout=LIMIT_MS)
    train = conductor.window.view(TRAIN)
    assert train is not None
    qtbot.waitUntil(train.isVisible, timeout=LIMIT_MS)


def test_the_tabulator_goes_down_every_screen(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening
) -> None:
    opening.happen(world.linked()[0])
    opening.happen(world.linked()[1])
    qtbot.waitUntil(lambda: OTHER in conductor.bridge.state.devices, timeout=LIMIT_MS)
    window = conductor.window
    for index in range(len(SCREENS)):
        window.go_to(index)
        view = window.view(index)
        assert view is not None
        heights = [widget.mapTo(view, widget.rect().center()).y() for widget in stops(view)]
        assert all(after > before - NEAR for before, after in pairwise(heights)), (view.title, heights)


def test_whoever_comes_by_keyboard_lands_on_something_with_a_name(conductor: Conductor) -> None:
    window = conductor.window
    for index in range(len(SCREENS)):
        window.go_to(index)
        focused = window.focusWidget()
        assert focused is not None
        assert focused.accessibleName(), window.view(index)


NEAR = 30
"""Pixels: things that stand in one row differ in height."""


def stops(view: QWidget) -> list[QWidget]:
    """What Tab stops at, in its order."""
    found, widget = [], view.nextInFocusChain()
    while widget is not None and widget is not view:
        takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if view.isAncestorOf(widget) and takes and widget.isVisible() and widget.focusProxy() is None:
            found.append(widget)
        widget = widget.nextInFocusChain()
    return found
