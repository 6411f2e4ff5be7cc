"""Loads the modules of the window's screens, and makes them, after the first paint and without delaying it.

Modules without Qt are imported in a thread; Qt's classes are made on the GUI thread, so the modules that need
them are imported there, one per turn of the event loop.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app import theme
from app.long_work import Turns, in_thread
from app.widgets.navigation import ScreenEntry

if TYPE_CHECKING:
    from app.bridge import Bridge
    from app.views.view import View

_WITHOUT_QT = (
    "app.connection",
    "app.core_thread",
    "app.words.device_words",
    "app.words.advice_words",
    "app.words.run_words",
    "app.words.device_names",
    "app.models.draft",
    "app.models.preflight",
    "app.models.readings",
    "app.models.role_changes",
    "app.models.stragglers",
    "app.charts.sources",
)
_FIRST = ("app.bridge", "app.system.tray", "app.system.signals")
_PACKAGE = "app.widgets"
_LAST = (
    *("app.views.view", "app.views.consent", "app.views.pairing", "app.views.welcome", "app.views.lifecycle"),
    "app.conductor",
)


def load(owner: QObject, turns: Turns, then: Callable[[], object]) -> None:
    """``then`` is called on the GUI thread, if ``owner`` still lives."""
    in_thread(owner, lambda: _import_all(_WITHOUT_QT), lambda _: turns.then(*_pieces(), then))


def make(screen: ScreenEntry, bridge: Bridge, turns: Turns, then: Callable[[View], object]) -> None:
    """Imports a screen's modules, makes its parts and styles them, one a turn, and calls ``then`` with it."""
    imports = [partial(importlib.import_module, name) for name in screen.parts]
    turns.then(*imports, screen.load, lambda: _make(screen.load().in_turns(bridge), turns, then))


def _make(made: Iterator[View | None], turns: Turns, then: Callable[[View], object]) -> None:
    view = next(made)
    if view is None:
        turns.first(lambda: _make(made, turns, then))
        return
    turns.first(lambda: then(view))
    for piece in view.pieces:
        turns.first(partial(theme.wear, piece))


def _import_all(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)


def _pieces() -> list[Callable[[], object]]:
    package = importlib.import_module(_PACKAGE)
    widgets = [f"{_PACKAGE}.{each.name}" for each in pkgutil.iter_modules(package.__path__)]
    return [lambda name=name: importlib.import_module(name) for name in (*_FIRST, *widgets, *_LAST)]  # type: ignore[misc]
