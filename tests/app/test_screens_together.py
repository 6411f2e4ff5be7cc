"""The real screens in one window, over a node with nothing behind it."""

from itertools import pairwise

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.models.draft import RunDraft
from app.views.devices import DevicesView
from app.views.runs import RunsView
from app.views.train import TrainView
from app.widgets.navigation import DEVICES, MACHINES, RUNS, SCREENS, TRAIN
from core.environment.recipe import WantedVersions
from core.vocabulary import events as ev
from core.vocabulary.commands import AnalyseScript, GetRun, StartRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Moment, RunSpec
from tests.app import world
from tests.app.cli.test_sweep import BEGUN, finished
from tests.app.seat import LIMIT_MS, Seat
from tests.core.fake_node import ME, OTHER, VERSIONS


def test_a_run_can_be_followed_on_every_screen(seat: Seat) -> None:
    seat.happen(*world.linked(), *world.begun())
    train = seat.window.view(TRAIN)
    assert isinstance(train, TrainView)
    seat.qtbot.waitUntil(lambda: train.pages.currentWidget() is train.live, timeout=LIMIT_MS)
    for index in (TRAIN, MACHINES, RUNS, TRAIN):
        seat.window.go_to(index)
        steps = (world.progressed(device, world.progress(index)) for device in (ME, OTHER))
        seat.happen(world.told(ME, world.reading()), *steps)
        seat.window.grab()
    seat.qtbot.waitUntil(lambda: train.live.charts.redraws > 0, timeout=LIMIT_MS)
    seat.happen(*world.finished())
    seat.qtbot.waitUntil(train.live.outcome.isVisible, timeout=LIMIT_MS)


def test_run_again_leads_from_the_history_to_train(seat: Seat) -> None:
    runs = seat.view(RUNS, RunsView)
    runs.again_asked.emit(world.entry())
    train = seat.window.view(TRAIN)
    assert train is not None
    seat.qtbot.waitUntil(train.isVisible, timeout=LIMIT_MS)
    wanted = AnalyseScript(path="/home/ada/digits/digits.py")
    seat.qtbot.waitUntil(lambda: wanted in seat.opening.node.commands, timeout=LIMIT_MS)


def test_what_a_past_runs_result_advises_leads_to_train(seat: Seat) -> None:
    runs = seat.view(RUNS, RunsView)
    runs.past.outcome.draft_asked.emit(RunDraft(script="/home/ada/digits/digits.py", arguments="--lr 0.1"))
    train = seat.window.view(TRAIN)
    assert isinstance(train, TrainView)
    seat.qtbot.waitUntil(lambda: train.setup.arguments.text() == "--lr 0.1", timeout=LIMIT_MS)
    assert train.isVisible()


def test_a_double_click_on_a_trial_leads_from_train_to_its_run(seat: Seat) -> None:
    run = RunId("run2")
    seat.happen(ev.SweepChanged(sweep=BEGUN.having(replace(finished(2, 0.25), run=run))))
    train, runs = seat.view(TRAIN, TrainView), seat.window.view(RUNS)
    assert train.sweep is not None and train.sweep.isVisible() and isinstance(runs, RunsView)
    best = train.sweep.table.topLevelItem(0)
    assert best is not None
    place = train.sweep.table.visualItemRect(best).center()
    left, where = Qt.MouseButton.LeftButton, train.sweep.table.viewport()
    seat.qtbot.mouseClick(where, left, pos=place)
    seat.qtbot.mouseDClick(where, left, pos=place)
    seat.qtbot.waitUntil(runs.isVisible, timeout=LIMIT_MS)
    seat.qtbot.waitUntil(lambda: GetRun(run=run, points=True) in seat.opening.node.commands, timeout=LIMIT_MS)
    runs._on_details(run, world.details(world.entry(2), steps=4))
    assert runs.pages.currentWidget() is runs.past


def test_going_on_with_a_past_run_starts_it_and_leads_to_train(seat: Seat) -> None:
    seat.happen(*world.linked())
    runs = seat.view(RUNS, RunsView)
    spec = RunSpec(script="/home/ada/digits/digits.py", seed=7)
    entry = world.entry(spec=spec, last=Stopped(by="here"), folder="/runs/1")
    moment = Moment(step=70, epoch=3, batch=1)
    runs.past.show_runs(
        [replace(world.details(entry, steps=3), checkpoint=moment)], seat.conductor.bridge.state
    )
    runs.pages.setCurrentWidget(runs.past)
    runs.past.outcome.go_on.click()
    wanted = StartRun(spec=replace(spec, devices=(OTHER,), resume=entry.run))
    seat.qtbot.waitUntil(lambda: wanted in seat.opening.node.commands, timeout=LIMIT_MS)
    train = seat.window.view(TRAIN)
    assert train is not None
    seat.qtbot.waitUntil(train.isVisible, timeout=LIMIT_MS)


def test_other_versions_lead_from_the_form_to_devices_and_are_offered_there(seat: Seat) -> None:
    train, devices = seat.view(TRAIN, TrainView), seat.window.view(DEVICES)
    asked: list[object] = []
    assert isinstance(devices, DevicesView)
    devices.environment.ask = asked.append  # type: ignore[method-assign, assignment]
    seat.happen(*world.linked())
    train.devices_asked.emit(None)
    assert seat.window.current == DEVICES and not asked
    seat.window.go_to(TRAIN)
    train.devices_asked.emit(OTHER)
    assert seat.window.current == DEVICES
    assert asked == [WantedVersions.like(VERSIONS)]


def test_the_tabulator_goes_down_every_screen(seat: Seat) -> None:
    seat.happen(*world.linked())
    for index in range(len(SCREENS)):
        seat.window.go_to(index)
        view = seat.window.view(index)
        assert view is not None
        heights = [widget.mapTo(view, widget.rect().center()).y() for widget in stops(view)]
        assert all(after > before - NEAR for before, after in pairwise(heights)), (view.title, heights)


def test_whoever_comes_by_keyboard_lands_on_something_with_a_name(seat: Seat) -> None:
    for index in range(len(SCREENS)):
        seat.window.go_to(index)
        focused = seat.window.focusWidget()
        assert focused is not None
        assert focused.accessibleName(), seat.window.view(index)


NEAR = 30
"""Pixels: things in one row differ in height."""


def stops(view: QWidget) -> list[QWidget]:
    """The widgets at which Tab stops, in its order."""
    found, widget = [], view.nextInFocusChain()
    while widget is not None and widget is not view:
        takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if view.isAncestorOf(widget) and takes and widget.isVisible() and widget.focusProxy() is None:
            found.append(widget)
        widget = widget.nextInFocusChain()
    return found
