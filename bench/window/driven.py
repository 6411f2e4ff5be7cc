"""Tandem's own window, opened as a person opens it, and driven by lines on stdin (see ``opened.py``).

``python -m bench.window.driven HOME``. Each answer is a line of JSON on stdout. Ends with its stdin.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtCore import QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QLabel

from app import desktop
from app.system.single_instance import SingleInstance
from app.widgets.navigation import DEVICES, MACHINES, RUNS, SETTINGS, TRAIN
from app.window import Window
from bench.window.watchdog import Watchdog
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import GetRun
from core.vocabulary.phases import Finished, ended

if TYPE_CHECKING:
    from app.conductor import Conductor

LOOK_MS = 250
LIMIT_S = 300.0
EACH_SCREEN_MS = 1500
SHOWN = (DEVICES, MACHINES, RUNS, SETTINGS, TRAIN)


class Driver(QObject):
    """Waits until the window is complete and a peer linked, reports it, then follows commands."""

    def __init__(self, conductor: Conductor, watchdog: Watchdog) -> None:
        super().__init__(conductor)
        self._conductor = conductor
        self._window = conductor.window
        self._watchdog = watchdog
        self._run_s = self._cpu_s = self._gui_s = 0.0
        self._said = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self._stdin = QSocketNotifier(0, QSocketNotifier.Type.Read, self)
        self._stdin.activated.connect(self._on_line)
        self._until(self._whole, lambda: self._say(gaps=self._watchdog.end()), "the window and a linked peer")

    def _whole(self) -> bool:
        linked = any(device.linked for device in self._conductor.bridge.state.devices.values())
        return linked and all(self._window.view(index) is not None for index in SHOWN)

    def _on_line(self) -> None:
        match sys.stdin.readline().split():
            case ["train" | "watch" as how, script, *arguments]:
                if how == "watch":
                    self._watchdog.begin()
                self._train(script, " ".join(arguments))
            case ["show", name]:
                self._window.go_to({"devices": DEVICES, "train": TRAIN}[name])
                self._say()
            case _:
                self._stdin.setEnabled(False)
                self._conductor.quit()

    def _train(self, script: str, arguments: str) -> None:
        """Trains as a person does: chooses the script, waits until Train can be pressed, presses it."""
        from app.views.train import TrainView

        train = self._window.view(TRAIN)
        assert isinstance(train, TrainView)
        bridge = self._conductor.bridge
        before = bridge.state.run.plan.run if bridge.state.run is not None else None
        self._window.go_to(TRAIN)
        train.choose(script)
        train.setup.arguments.setText(arguments)
        train.setup.arguments.textEdited.emit(arguments)

        def over() -> bool:
            run = bridge.state.run
            return run is not None and run.plan.run != before and ended(run.phase)

        def tell() -> None:
            self._run_s, self._cpu_s = time.monotonic() - self._run_s, time.process_time() - self._cpu_s
            self._gui_s = time.thread_time() - self._gui_s
            assert bridge.state.run is not None
            bridge.submit(GetRun(run=bridge.state.run.plan.run), self._on_details)

        def press() -> None:
            self._run_s, self._cpu_s = time.monotonic(), time.process_time()
            self._gui_s = time.thread_time()
            train.setup.train.click()
            self._until(over, tell, "the end of the run")

        def ready() -> bool:
            # A peer that still has another run would not take part.
            free = any(device.linked and not device.busy for device in bridge.state.devices.values())
            return free and train.setup.read is not None and train.setup.train.isEnabled()

        self._until(ready, press, "Train to be ready")

    def _on_details(self, answer: object) -> None:
        """Then visits every screen, like after any run."""
        assert isinstance(answer, RunDetails)

        def next_screen(left: list[int]) -> None:
            if left:
                self._window.go_to(left[0])
                QTimer.singleShot(EACH_SCREEN_MS, self, lambda: next_screen(left[1:]))
            else:
                self._say(
                    finished=isinstance(answer.entry.phase, Finished),
                    phase=answer.entry.phase,
                    steps_s=answer.entry.summary.steps_s,
                    gaps=self._watchdog.end(),
                    run_s=self._run_s,
                    cpu_s=self._cpu_s,
                    gui_s=self._gui_s,
                )

        next_screen(list(SHOWN))

    def _until(
        self, condition: Callable[[], object], then: Callable[[], None], awaited: str, until_s: float = 0.0
    ) -> None:
        until_s = until_s or time.monotonic() + LIMIT_S
        if condition():
            then()
        elif time.monotonic() < until_s:
            QTimer.singleShot(LOOK_MS, self, lambda: self._until(condition, then, awaited, until_s))
        else:
            seen = [label.text() for label in self._window.findChildren(QLabel) if label.isVisible()]
            self._say(problem=f"waited {LIMIT_S:g} s for {awaited}", seen=seen)

    def _say(self, **said: Any) -> None:
        self._said.write(msgspec.json.encode({"at_s": time.monotonic(), **said}).decode() + "\n")


def main(home: str) -> int:
    begin, conduct = desktop._begin, desktop._conduct
    watchdogs: list[Watchdog] = []

    def begin_watched(window: Window, folder: Path, first: SingleInstance, script: str) -> None:
        # Watches from the first paint on, since the screens' modules are loaded after it.
        watchdogs.append(Watchdog(window))
        begin(window, folder, first, script)

    def conduct_and_drive(window: Window, folder: Path, first: SingleInstance, script: str) -> None:
        conduct(window, folder, first, script)
        conductor = window.findChild(QObject, "conductor")
        Driver(conductor, watchdogs.pop())  # type: ignore[arg-type]

    desktop._begin, desktop._conduct = begin_watched, conduct_and_drive
    return desktop.main(["--home", home])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
