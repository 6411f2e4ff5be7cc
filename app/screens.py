"""The screens in the order of the navigation. Each is made after the first paint, in its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from app.widgets.navigation import Entry

if TYPE_CHECKING:
    from app.bridge import Bridge
    from app.views.view import View


class Screen(NamedTuple):
    """``make`` imports what the screen needs, so that the first paint does not wait for it."""

    entry: Entry
    make: Callable[[Bridge], View]


def _devices(bridge: Bridge) -> View:
    from app.views.devices import DevicesView

    return DevicesView(bridge)


def _train(bridge: Bridge) -> View:
    from app.views.train import TrainView

    return TrainView(bridge)


def _machines(bridge: Bridge) -> View:
    from app.views.machines import MachinesView

    return MachinesView(bridge)


def _runs(bridge: Bridge) -> View:
    from app.views.runs import RunsView

    return RunsView(bridge)


def _settings(bridge: Bridge) -> View:
    from app.views.settings import SettingsView

    return SettingsView(bridge)


DEVICES, TRAIN, MACHINES, RUNS, SETTINGS = range(5)
SCREENS = (
    Screen(Entry("Devices", "devices"), _devices),
    Screen(Entry("Train", "train"), _train),
    Screen(Entry("Machines", "machines"), _machines),
    Screen(Entry("Runs", "runs"), _runs),
    Screen(Entry("Settings and help", "settings", bottom=True), _settings),
)
