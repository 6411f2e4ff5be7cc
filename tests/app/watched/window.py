"""Tandem's own window, used by a person as quick as a machine, with a watchdog on its GUI thread.

``python -m tests.app.watched.window HOME ADDRESS``; with a third argument, milliseconds, it blocks the GUI
thread for that long and ends. The last line on stdout is JSON.
"""

from __future__ import annotations

import linecache
import os
import sys
import time
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from types import GeneratorType
from typing import TYPE_CHECKING, cast

import msgspec
from PySide6.QtCore import QItemSelectionModel, QObject, Qt, QTimer
from PySide6.QtWidgets import QAbstractButton, QComboBox, QFileDialog, QLineEdit, QWidget

from app import desktop
from app.models.runs_model import Column
from app.widgets.navigation import DEVICES, MACHINES, RUNS, SETTINGS, TRAIN
from app.window import Window
from bench.window.watchdog import Watchdog
from tests.app.watched import laptop
from tests.app.watched.pace import Pace

if TYPE_CHECKING:
    from app.system.single_instance import SingleInstance
    from app.views.runs import RunsView
    from app.views.settings import SettingsView
    from app.views.train import TrainView

LOOK_MS = 25
SETTLE_S = 0.25
LIMIT_S = 200.0
Story = Generator[Callable[[], object], None, None]


class Person(QObject):
    """Takes the next step of a story once its condition holds. Each step has its own turn of the event
    loop, like a click."""

    def __init__(self, window: Window, watchdog: Watchdog, story: Story) -> None:
        super().__init__(window)
        self._window = window
        self._pace = Pace()
        self._watchdog = watchdog
        assert isinstance(story, GeneratorType)
        self._story = story
        self._awaited: Callable[[], object] = lambda: True
        self._since_s = time.monotonic()
        self._done_s = 0.0
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s - self._since_s > LIMIT_S:
            self._end(f"waited {LIMIT_S:g} s at {self._watchdog.during}")
        elif self._story.gi_running:
            return
        elif self._done_s:
            if now_s - self._done_s > SETTLE_S:
                self._go_on()
        elif self._awaited():
            self._done_s = now_s

    def _go_on(self) -> None:
        self._done_s, self._since_s = 0.0, time.monotonic()
        try:
            self._awaited = next(self._story)
        except StopIteration:
            self._end("")
            return
        except Exception:
            self._end(f"{self._watchdog.during}\n{traceback.format_exc()}")
            return
        frame = self._story
        while isinstance(frame.gi_yieldfrom, GeneratorType):
            frame = frame.gi_yieldfrom
        assert frame.gi_frame is not None
        line = frame.gi_frame.f_lineno
        self._watchdog.during = f"{line}: {linecache.getline(__file__, line).strip()}"

    def _end(self, problem: str) -> None:
        self._timer.stop()
        said = {"problem": problem, "gaps": self._watchdog.end(), "pace": self._pace.end()}
        os.write(1, b"\n" + msgspec.json.encode(said) + b"\n")
        self._window.close()


def story(window: Window, address: str, block_s: float, folder: Path) -> Story:
    """From the first steps to a diagnostics zip. Each yielded condition is awaited."""

    def there(name: str, inside: QWidget | None = None) -> QWidget | None:
        """A visible widget by name."""
        within: QWidget = inside or window
        return next((each for each in within.findChildren(QWidget, name) if each.isVisible()), None)

    def can_press(name: str, inside: QWidget | None = None) -> Callable[[], object]:
        return lambda: (button := there(name, inside)) is not None and button.isEnabled()

    def press(name: str, inside: QWidget | None = None) -> None:
        button = there(name, inside)
        assert isinstance(button, QAbstractButton), name
        button.click()

    def type_into(name: str, text: str) -> None:
        edit = there(name)
        assert isinstance(edit, QLineEdit)
        edit.setFocus()
        edit.setText(text)
        edit.textEdited.emit(text)

    def choose(combo: QComboBox, index: int) -> None:
        combo.setCurrentIndex(index)
        combo.activated.emit(index)

    def is_shown(index: int) -> bool:
        view = window.view(index)
        return view is not None and view.isVisible()

    yield can_press("next")
    yield lambda: window.view(SETTINGS) is not None
    if block_s:
        hold_up(block_s)
        yield lambda: True
        return
    # The first steps.
    yield lambda: there("address") is not None
    type_into("address", address)
    yield lambda: True
    press("pair-address")
    yield can_press("same")
    press("same")
    yield can_press("train-sample")
    press("next")
    window.go_to(TRAIN)
    yield lambda: is_shown(TRAIN)
    # Every screen for the first time.
    for index in (DEVICES, MACHINES, RUNS, SETTINGS, TRAIN):
        window.go_to(index)
        yield lambda: True
    train = cast("TrainView", window.view(TRAIN))

    def has_read(name: str) -> Callable[[], object]:
        return lambda: train.setup.read is not None and f"/{name}/" in train.setup.draft.script

    for name in ("table", "text", "images", "digits"):
        if train.setup.draft.script:
            press("examples")
        press(f"example-{name}")
        yield has_read(name)
        yield can_press("train")
    yield lambda: train.setup.train.text() == "Train on 2 laptops"
    # A run, with its plots and log.
    press("train")
    yield lambda: train.pages.currentWidget() is train.live
    yield lambda: train.live.charts.redraws > 2
    press("log", train.live)
    yield lambda: train.live.log.text.isVisible()
    for index in (MACHINES, DEVICES, RUNS, SETTINGS, TRAIN):
        window.go_to(index)
        yield lambda: True
    train.live.charts.plots[0].log.toggle()
    yield lambda: True
    train.live.charts.bar.axis.setCurrentIndex(1)
    yield lambda: train.live.outcome.isVisible()
    press("log", train.live)
    yield lambda: True
    press("again")
    yield can_press("train", train)
    press("train", train)
    yield can_press("stop", train.live)
    yield lambda: train.live.charts.redraws > 2
    press("stop")
    yield lambda: train.live.outcome.isVisible()
    # The history.
    window.go_to(RUNS)
    runs = cast("RunsView", window.view(RUNS))
    yield lambda: runs.model.rowCount() > 100
    for column in (Column.STATE, Column.DURATION, Column.BEST, Column.STARTED):
        runs.table.sortByColumn(column, Qt.SortOrder.DescendingOrder)
        yield lambda: True
    entries = [
        runs.model.entry(runs.sorted.mapToSource(runs.sorted.index(row, 0)).row())
        for row in range(runs.sorted.rowCount())
    ]
    runs.filter.setText("bob finished")
    yield lambda: True
    runs.filter.clear()
    yield lambda: True
    long = [row for row, entry in enumerate(entries) if entry.run in laptop.LONG]
    runs.table.selectRow(long[0])
    yield lambda: True
    press("details")
    yield lambda: runs.past.isVisible() and runs.past.charts.plots and runs.past.charts.redraws > 0
    press("log", runs.past)
    yield lambda: runs.past.log_text.isVisible()

    def has_said(words: str) -> Callable[[], object]:
        return lambda: runs.past.charts.export.said.text().replace("\u200b", "") == words

    for suffix in ("png", "svg", "csv"):
        saved = folder / f"plots.{suffix}"
        runs.past.charts.export.save(saved)
        yield has_said(f"Saved {saved}.")
    for index in (DEVICES, RUNS):
        window.go_to(index)
        yield lambda: True
    press("back")
    yield lambda: runs.table.isVisible()
    for row in long:
        flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        runs.table.selectionModel().select(runs.sorted.index(row, 0), flags)
    yield can_press("compare")
    shown = runs.past.charts.redraws
    press("compare")
    yield lambda: runs.past.isVisible() and runs.past.charts.redraws > shown
    # Settings and help.
    window.go_to(SETTINGS)
    settings = cast("SettingsView", window.view(SETTINGS))
    yield lambda: True
    for index in (2, 1, 0):
        choose(settings.laptop.theme, index)
        yield lambda: True
    press("doctor")
    yield lambda: there("save-diagnostics") is not None and settings.help.look.isEnabled()
    press("save-diagnostics")
    yield lambda: window.findChild(QFileDialog) is not None
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.fileSelected.emit(str(folder / "diagnostics.zip"))
    dialog.reject()
    yield lambda: settings.help.saved.isVisible()
    for index in (2, 0):
        choose(settings.laptop.theme, index)
        for screen in (TRAIN, RUNS, MACHINES, DEVICES, SETTINGS):
            window.go_to(screen)
            yield lambda: True


def hold_up(seconds: float) -> None:
    """A block that the watchdog must find."""
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def main(home: str, address: str, block_ms: str = "0") -> int:
    begin = desktop._begin

    def begin_watched(window: Window, folder: Path, first: SingleInstance, script: str) -> None:
        watchdog = Watchdog(window)
        watchdog.during = "opening"
        told = story(window, address, float(block_ms) / 1000, folder.parent)
        Person(window, watchdog, told)
        begin(window, folder, first, script)

    desktop._begin = begin_watched
    desktop._opens = laptop.node_of
    return desktop.main(["--home", home])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
