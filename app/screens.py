"""The screens in the order of the navigation. Each is made after the first paint, in its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from app.widgets.navigation import Entry

if TYPE_CHECKING:
    from app.bridge import Bridge
    from app.views.view import View


class Screen(NamedTuple):
    """``load`` imports what the screen needs, and returns what makes it: two turns of the event loop."""

    entry: Entry
    load: Callable[[], Callable[[Bridge], View]]


def _devices() -> Callable[[Bridge], View]:
    from app.views.devices import DevicesView

    return DevicesView


def _train() -> Callable[[Bridge], View]:
    from app.views.train import TrainView

    return TrainView


def _machines() -> Callable[[Bridge], View]:
    from app.views.machines import MachinesView

    return MachinesView


def _runs() -> Callable[[Bridge], View]:
    from app.views.runs import RunsView

    return RunsView


def _settings() -> Callable[[Bridge], View]:
    from app.views.settings import SettingsView

    return SettingsView


DEVICES, TRAIN, MACHINES, RUNS, SETTINGS = range(5)
SCREENS = (
    Screen(Entry("Devices", "devices"), _devices),
    Screen(Entry("Train", "train"), _train),
    Screen(Entry("Machines", "machines"), _machines),
    Screen(Entry("Runs", "runs"), _runs),
    Screen(Entry("Settings and help", "settings", bottom=True), _settings),
)
