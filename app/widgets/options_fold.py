"""Rarely changed options: seed, strategy, numbers on the wire, what a script may reach."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from msgspec import structs
from PySide6.QtCore import Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit

from app.models import data_folders, openings
from app.models.draft import RunDraft
from app.theme import GAP
from app.widgets.fold import Fold
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers, set_tooltip
from core.vocabulary import units
from core.vocabulary.limits import SILENT_S
from core.vocabulary.options import AWAY_S, GO_ON_S, RunOptions, Sync, Wire
from core.vocabulary.plan import StrategyKind
from core.vocabulary.text import capitalised

STRATEGIES: dict[StrategyKind | None, str] = {
    None: "As found by reading the script",
    "managed": "Tandem makes fit work across laptops",
    "own": "The script brings its own strategy",
}
WIRES: dict[Wire, str] = {
    "f32": "float32, exact",
    "bf16": "bfloat16, half the bytes (not exact)",
    "fp16": "float16, half the bytes (not exact)",
    "int8": "8-bit numbers, a quarter of the bytes with two laptops (not exact)",
    "auto": "bfloat16 for large models (then not exact)",
}
assert set(WIRES) == set(get_args(Wire))
MOST_SEED = (1 << 31) - 1
LEAST_CHARACTERS = 16
"""Minimum width of a choice, if letters are large and it does not fit."""


class OptionsFold(Fold):
    """``changed`` after each change by the user."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__("Options", name="options")
        self._sync: Sync = "exact"
        self._seed = QLineEdit()
        self._seed.setObjectName("seed")
        self._seed.setValidator(QIntValidator(0, MOST_SEED, self._seed))
        self._seed.setPlaceholderText("a new one for each run")
        self._strategy = _choices(list(STRATEGIES.values()), "Strategy")
        self._wire = _choices(list(WIRES.values()), "Gradients travel as")
        name_for_readers(self._seed, "Seed", "The same on every laptop. Empty: a new one for each run.")
        self._downloads = QCheckBox("The script may download")
        self._downloads.setObjectName("downloads")
        self._downloads.setAccessibleName("Downloads: the script may download")
        set_tooltip(
            self._downloads,
            "Its trainers are sealed off. Without this they reach nothing but the other laptops of the run. "
            "Each user is told which, and asked.",
        )
        self._waits = QCheckBox("The others wait for it")
        self._waits.setObjectName("waits")
        self._waits.setAccessibleName("A laptop that is away: the others wait for it")
        set_tooltip(
            self._waits,
            f"Up to {units.duration(AWAY_S)}. Without this they go on once it has been silent for "
            f"{units.duration(SILENT_S)}, and it joins them again when it is back.",
        )
        self._opens = QLineEdit()
        self._opens.setObjectName("opens")
        self._opens.setPlaceholderText("ben=~/Pictures")
        name_for_readers(self._opens, "Files on other laptops", f"{capitalised(openings.HELP)}.")
        self._data = QLineEdit()
        self._data.setObjectName("data")
        self._data.setPlaceholderText("photos=~/Pictures/photos")
        name_for_readers(self._data, "Data folders", f"{capitalised(data_folders.HELP)}.")
        self._rare = QCheckBox("On slow networks, meet rarely (not exact)")
        self._rare.setObjectName("rare")
        self._rare.setAccessibleName("Meetings: on slow networks, meet rarely (not exact)")
        set_tooltip(
            self._rare,
            "Each laptop trains some steps by itself; then they take the mean of what they learned. Without "
            "this they meet in every step, and the result is that of one machine.",
        )
        form = QFormLayout()
        form.setHorizontalSpacing(GAP)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        for title, field in (
            ("Seed", self._seed),
            ("Strategy", self._strategy),
            ("Gradients travel as", self._wire),
            ("Meetings", self._rare),
            ("Downloads", self._downloads),
            ("A laptop that is away", self._waits),
            ("Files on other laptops", self._opens),
            ("Data folders", self._data),
        ):
            label = Label(title, "faint")
            label.setBuddy(field)
            form.addRow(label, field)
        self.body.addLayout(form)
        self._form = form
        self.show_sealed(False)
        self._seed.textEdited.connect(lambda _: self.changed.emit())
        self._opens.textEdited.connect(lambda _: self.changed.emit())
        self._data.textEdited.connect(lambda _: self.changed.emit())
        self._strategy.activated.connect(lambda _: self.changed.emit())
        self._wire.activated.connect(lambda _: self.changed.emit())
        self._rare.clicked.connect(self._choose_sync)
        self._downloads.clicked.connect(lambda _: self.changed.emit())
        self._waits.clicked.connect(lambda _: self.changed.emit())

    def _choose_sync(self, rare: bool) -> None:
        self._sync = "rare" if rare else "exact"
        self.changed.emit()

    def chosen(self, draft: RunDraft) -> RunDraft:
        """``draft`` with the choices made here; other fields are unchanged."""
        text = self._seed.text().strip()
        options = structs.replace(
            draft.options,
            wire=list(WIRES)[self._wire.currentIndex()],
            sync=self._sync,
            downloads=self._downloads.isChecked(),
            go_on_s=draft.options.away_s if self._waits.isChecked() else GO_ON_S,
        )
        return replace(
            draft,
            seed=int(text) if self._seed.hasAcceptableInput() and text else None,
            strategy=list(STRATEGIES)[self._strategy.currentIndex()],
            opens=self._opens.text(),
            data=self._data.text(),
            options=options,
        )

    def show_options(self, draft: RunDraft) -> None:
        """Shows the options of an earlier run, say; unfolded if they are unusual."""
        self._seed.setText("" if draft.seed is None else str(draft.seed))
        self._strategy.setCurrentIndex(list(STRATEGIES).index(draft.strategy))
        self._wire.setCurrentIndex(list(WIRES).index(draft.options.wire))
        self._sync = draft.options.sync
        self._rare.setChecked(self._sync != "exact")
        self._downloads.setChecked(draft.options.downloads)
        self._waits.setChecked(draft.options.go_on_s >= draft.options.away_s)
        self._opens.setText(draft.opens)
        self._data.setText(draft.data)
        usual = (None, None, RunOptions(), "", "")
        if (draft.seed, draft.strategy, draft.options, draft.opens, draft.data) != usual:
            self.head.setChecked(True)

    def show_sealed(self, sealed: bool) -> None:
        """Whether the run's trainers are sealed: only then can downloads be forbidden to a script."""
        self._form.setRowVisible(self._downloads, sealed)


def _choices(words: list[str], name: str) -> QComboBox:
    box = unscrolled(QComboBox())
    box.addItems(words)
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(LEAST_CHARACTERS)
    return box
