"""The window's screens, and their list at the left: a button each, the last ones at the bottom."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QSize, Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.widgets.icons import screen_icon


class ScreenEntry(NamedTuple):
    """``name``: of its icon in resources/icons/screens, and of its module in ``app.views`` with the class
    ``view``. ``parts``: modules to import before that one, each in a turn of the event loop. ``bottom``: at
    the lower end."""

    title: str
    name: str
    view: str = ""
    parts: tuple[str, ...] = ()
    bottom: bool = False

    def load(self) -> Any:
        """Imports the screen's module. Returns its class, a ``View``."""
        return getattr(import_module(f"app.views.{self.name}"), self.view)


_OF_TRAIN = (
    *("app.charts.export_menu", "app.charts.look_bar", "app.charts.legend", "app.charts.grid_of_plots"),
    *("app.charts.panel", "app.models.run_comparison", "app.charts.trial_curves", "app.views.roles"),
    *("app.views.run_page", "app.views.train_live", "app.views.train_setup", "app.views.sweep_card"),
)

DEVICES, TRAIN, MACHINES, RUNS, SETTINGS = range(5)
SCREENS = (
    ScreenEntry("Devices", "devices", "DevicesView"),
    ScreenEntry("Train", "train", "TrainView", _OF_TRAIN),
    ScreenEntry("Machines", "machines", "MachinesView"),
    ScreenEntry("Runs", "runs", "RunsView"),
    ScreenEntry("Settings and help", "settings", "SettingsView", bottom=True),
)
"""In order. Each is made in its turn, after the first paint."""


class Navigation(QFrame):
    """``chosen(index)``: a screen was chosen by mouse or keyboard."""

    chosen = Signal(int)

    def __init__(self, entries: tuple[ScreenEntry, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("navigation")
        self.setAccessibleName("Screens")
        self._entries = entries
        self._drawn: tuple[str, int, float] | None = None
        self._group = QButtonGroup(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.GAP // 2, theme.GAP, theme.GAP // 2, theme.GAP)
        layout.setSpacing(4)
        stretched = False
        for index, entry in enumerate(entries):
            if entry.bottom and not stretched:
                layout.addStretch(1)
                stretched = True
            button = QPushButton(entry.title)
            button.setProperty("kind", "screen")
            button.setObjectName(f"screen-{entry.name}")
            button.setAccessibleName(entry.title)
            button.setCheckable(True)
            button.setToolTip(f"Ctrl+{index + 1}")
            self._group.addButton(button, index)
            layout.addWidget(button)
        if not stretched:
            layout.addStretch(1)
        self._group.idClicked.connect(self.chosen)
        self._draw_icons()

    def show_current(self, index: int) -> None:
        self._group.button(index).setChecked(True)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._draw_icons()
        super().changeEvent(event)

    def _draw_icons(self) -> None:
        size = self.fontMetrics().height() * 4 // 3
        wanted = (theme.colours().text, size, self.devicePixelRatioF())
        if wanted == self._drawn:
            return
        self._drawn = wanted
        for index, entry in enumerate(self._entries):
            button = self._group.button(index)
            button.setIcon(screen_icon(entry.name, *wanted))
            button.setIconSize(QSize(size, size))
