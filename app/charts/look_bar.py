"""The row above the plots: metrics, smoothing, axis, difference to a run, follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QSlider, QWidget

from app.bridge import Bridge
from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import column, row
from app.widgets.flow import Flow
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers, set_tooltip
from core.report.points import Axis
from core.vocabulary.commands import ChangeSettings
from core.vocabulary.settings import SettingsChange
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from app.charts.curve import Look

OFF = "off"
FINEST = 99
"""Slider steps: a weight of 0 to 0.99."""
AXES = {"step": "Steps", "epoch": "Epochs", "time": "Time"}
KEPT_AFTER_MS = 600
"""A slider's value is saved this long after its last move."""
_NAME = 40


class LookBar(QWidget):
    """``keep_in``: the user's choice of smoothing is kept in the settings."""

    filter_changed = Signal()
    look_changed = Signal()
    trim_changed = Signal()
    base_changed = Signal()
    follow_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        character = self.fontMetrics().averageCharWidth()
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter metrics")
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(character * 22)
        self.filter.setObjectName("filter-metrics")
        name_for_readers(self.filter, "Filter metrics", "Shows metrics whose names contain this text.")
        self.smoothing = unscrolled(QSlider(Qt.Orientation.Horizontal))
        self.smoothing.setRange(0, FINEST)
        self.smoothing.setFixedWidth(character * 16)
        name_for_readers(self.smoothing, "Smoothing", "0 is off. The raw line stays faintly visible.")
        self._weight = Label(OFF, "faint")
        self._weight.setFixedWidth(self.fontMetrics().horizontalAdvance("0.00") + 2)
        self._kept = QTimer(self, singleShot=True, interval=KEPT_AFTER_MS)
        self.trimmed = QCheckBox("Ignore outliers")
        self.trimmed.setObjectName("ignore-outliers")
        bulk = "Scales the vertical axis to most of the values. Peaks may be cut off."
        set_tooltip(self.trimmed, bulk)
        name_for_readers(self.trimmed, "Ignore outliers", bulk)
        self.axis = unscrolled(QComboBox())
        self.axis.addItems(list(AXES.values()))
        name_for_readers(self.axis, "Horizontal axis")
        self.base = unscrolled(QComboBox())
        self.base.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.base.setMinimumContentsLength(24)
        self.base.hide()
        name_for_readers(self.base, "Difference to a run")
        self.follow = button("Follow", self.follow_asked.emit, "primary", name="follow")
        set_tooltip(self.follow, "Show the whole run and follow new steps. Or double-click a plot.")
        self.follow.hide()
        smoothing = QWidget()
        smoothing.setLayout(row(Label("Smoothing", "faint"), self.smoothing, self._weight, spacing=GAP // 2))
        self.pieces = Flow(self.filter, smoothing, self.axis, self.trimmed, self.base, self.follow)
        self.pieces.spacing = GAP * 2 // 3
        self.setLayout(column(self.pieces))
        self.filter.textChanged.connect(lambda _: self.filter_changed.emit())
        self.smoothing.valueChanged.connect(self._on_smoothed)
        self.axis.currentIndexChanged.connect(lambda _: self.look_changed.emit())
        self.trimmed.toggled.connect(lambda _: self.trim_changed.emit())
        self.base.currentIndexChanged.connect(lambda _: self.base_changed.emit())

    def keep_in(self, bridge: Bridge) -> None:
        def keep() -> None:
            bridge.submit(ChangeSettings(change=SettingsChange(smoothing=self.smoothing.value() / 100)))

        self._kept.timeout.connect(keep)

    def end_with(self, piece: QWidget) -> None:
        """Adds ``piece`` at the right end."""
        self.pieces.add(piece)
        self.pieces.right = piece

    @property
    def look(self) -> Look:
        """The common look; each plot has its own logarithmic scale."""
        from app.charts.curve import Look

        return Look(
            axis=get_args(Axis)[self.axis.currentIndex()],
            smoothing=self.smoothing.value() / 100,
            trimmed=self.trimmed.isChecked(),
        )

    def lets_through(self, metric: str) -> bool:
        return self.filter.text().strip().casefold() in metric.casefold()

    def show_smoothing(self, weight: float) -> None:
        """Restores the user's last choice."""
        if not self._kept.isActive() and round(weight * 100) != self.smoothing.value():
            self.smoothing.setValue(round(weight * 100))
            self._kept.stop()

    def show_runs(self, labels: Sequence[str]) -> None:
        """Offers these runs as the base for comparison."""
        with QSignalBlocker(self.base):
            self.base.clear()
            self.base.addItems(["Values", *(f"Difference to {plain(label, _NAME)}" for label in labels)])
        self.base.setVisible(len(labels) > 1)

    @property
    def base_place(self) -> int | None:
        """Place of the run that the others are compared with."""
        return self.base.currentIndex() - 1 if self.base.currentIndex() > 0 else None

    def show_following(self, following: bool) -> None:
        self.follow.setVisible(not following)

    def _on_smoothed(self, value: int) -> None:
        self._weight.say(f"{value / 100:.2f}" if value else OFF)
        self._kept.start()
        self.look_changed.emit()
