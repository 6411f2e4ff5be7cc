"""The row above the plots: which metrics, smoothing, logarithmic scale, axis, follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QMenu, QSlider, QWidget

from app.theme import GAP
from app.widgets.buttons import button, escape_mnemonic
from app.widgets.card import column, row
from app.widgets.flow import Flow
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers, set_tooltip

if TYPE_CHECKING:
    from app.charts.curve import Look

OFF = "off"
FINEST = 99
"""Steps of the slider: a weight of 0 to 0.99."""


class LookBar(QWidget):
    metrics_chosen = Signal(list)
    look_changed = Signal()
    follow_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._metrics: list[str] = []
        self._chosen: list[str] = []
        self.menu = QMenu(self)
        self.metrics = button("Metrics", lambda: None, name="metrics")
        self.metrics.setMenu(self.menu)
        self.smoothing = unscrolled(QSlider(Qt.Orientation.Horizontal))
        self.smoothing.setRange(0, FINEST)
        self.smoothing.setFixedWidth(self.fontMetrics().averageCharWidth() * 16)
        name_for_readers(self.smoothing, "Smoothing", "0 is off. The raw line stays faintly visible.")
        self._weight = Label(OFF, "faint")
        self._weight.setFixedWidth(self.fontMetrics().horizontalAdvance("0.00") + 2)
        self.log = QCheckBox("Log scale")
        self.axis = unscrolled(QComboBox())
        self.axis.addItems(["Steps", "Time"])
        name_for_readers(self.axis, "Horizontal axis")
        self.follow = button("Follow", self.follow_asked.emit, "primary", name="follow")
        set_tooltip(self.follow, "Show everything again, and each new step.")
        self.follow.hide()
        smoothing = QWidget()
        smoothing.setLayout(row(Label("Smoothing", "faint"), self.smoothing, self._weight, spacing=GAP // 2))
        self.pieces = Flow(self.metrics, smoothing, self.log, self.axis, self.follow)
        self.pieces.spacing = GAP * 2 // 3
        self.setLayout(column(self.pieces))
        self.smoothing.valueChanged.connect(self._on_changed)
        self.log.toggled.connect(self._on_changed)
        self.axis.currentIndexChanged.connect(self._on_changed)

    def end_with(self, piece: QWidget) -> None:
        """At the right end."""
        self.pieces.add(piece)
        self.pieces.right = piece

    @property
    def look(self) -> Look:
        from app.charts.curve import Look

        return Look(
            axis="time" if self.axis.currentIndex() else "step",
            smoothing=self.smoothing.value() / 100,
            log=self.log.isChecked(),
        )

    def show_metrics(self, names: Sequence[str], chosen: Sequence[str]) -> None:
        self._metrics, self._chosen = list(names), list(chosen)
        self.menu.clear()
        for name in names:
            action = self.menu.addAction(escape_mnemonic(name))
            action.setCheckable(True)
            action.setChecked(name in chosen)
            action.triggered.connect(lambda on, name=name: self._toggle(name, on))
        self.metrics.setEnabled(len(names) > 1)

    def show_following(self, following: bool) -> None:
        self.follow.setVisible(not following)

    def _toggle(self, name: str, on: bool) -> None:
        chosen = [each for each in self._metrics if (on if each == name else each in self._chosen)]
        # The last one stays: a panel without a plot would look broken.
        self._chosen = chosen[-3:] if chosen else [name]
        self.metrics_chosen.emit(self._chosen)

    def _on_changed(self) -> None:
        value = self.smoothing.value()
        self._weight.say(f"{value / 100:.2f}" if value else OFF)
        self.look_changed.emit()
