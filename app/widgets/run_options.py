"""What hardly anybody needs to change: seed, strategy, numbers on the wire, how trainers meet, downloads."""

from __future__ import annotations

from typing import get_args

from PySide6.QtCore import Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit

from app.models.draft import Draft
from app.theme import GAP
from app.widgets.fold import Fold
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers, set_tooltip
from core.vocabulary.plan import Exchange, StrategyKind, Wire

STRATEGIES: dict[StrategyKind | None, str] = {
    None: "As found by reading the script",
    "managed": "Tandem makes fit work across laptops",
    "own": "The script brings its own strategy",
}
WIRES: dict[Wire, str] = {
    "f32": "float32, exact",
    "bf16": "bfloat16, half the bytes",
    "fp16": "float16, half the bytes",
    "auto": "Tandem chooses",
}
EXCHANGES: dict[Exchange | None, str] = {
    None: "As usual for the script",
    "tls": "TLS, with keys of the run",
    "tensorflow": "TensorFlow, open to the network",
}
assert set(WIRES) == set(get_args(Wire))
assert set(EXCHANGES) == {None, *get_args(Exchange)}
MOST_SEED = (1 << 31) - 1
LEAST_CHARACTERS = 16
"""Of a choice, where letters are large and there is no room for all of it."""


class RunOptions(Fold):
    """``changed`` after each change by the user."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__("Options", name="options")
        self._seed = QLineEdit()
        self._seed.setObjectName("seed")
        self._seed.setValidator(QIntValidator(0, MOST_SEED, self._seed))
        self._seed.setPlaceholderText("a new one for each run")
        self._strategy = _choices(list(STRATEGIES.values()), "Strategy")
        self._wire = _choices(list(WIRES.values()), "Gradients travel as")
        self._exchange = _choices(list(EXCHANGES.values()), "Laptops meet by")
        name_for_readers(self._seed, "Seed", "The same on every laptop. Empty: a new one for each run.")
        self._downloads = QCheckBox("The script may download")
        self._downloads.setObjectName("downloads")
        self._downloads.setAccessibleName("Downloads: the script may download")
        set_tooltip(
            self._downloads,
            "Its trainers are sealed off. Without this they reach nothing but the other laptops of the run. "
            "Each user is told which, and asked.",
        )
        form = QFormLayout()
        form.setHorizontalSpacing(GAP)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        for title, field in (
            ("Seed", self._seed),
            ("Strategy", self._strategy),
            ("Gradients travel as", self._wire),
            ("Laptops meet by", self._exchange),
            ("Downloads", self._downloads),
        ):
            label = Label(title, "faint")
            label.setBuddy(field)
            form.addRow(label, field)
        self.body.addLayout(form)
        self._form = form
        self.show_sealed(False)
        self._seed.textEdited.connect(lambda _: self.changed.emit())
        self._strategy.activated.connect(lambda _: self.changed.emit())
        self._wire.activated.connect(lambda _: self.changed.emit())
        self._exchange.activated.connect(lambda _: self.changed.emit())
        self._downloads.clicked.connect(lambda _: self.changed.emit())

    @property
    def seed(self) -> int | None:
        text = self._seed.text().strip()
        return int(text) if self._seed.hasAcceptableInput() and text else None

    @property
    def strategy(self) -> StrategyKind | None:
        return list(STRATEGIES)[self._strategy.currentIndex()]

    @property
    def wire(self) -> Wire:
        return list(WIRES)[self._wire.currentIndex()]

    @property
    def exchange(self) -> Exchange | None:
        return list(EXCHANGES)[self._exchange.currentIndex()]

    @property
    def downloads(self) -> bool:
        return self._downloads.isChecked()

    def show_options(self, draft: Draft) -> None:
        """As they were in an earlier run, say; in sight where they are not as usual."""
        self._seed.setText("" if draft.seed is None else str(draft.seed))
        self._strategy.setCurrentIndex(list(STRATEGIES).index(draft.strategy))
        self._wire.setCurrentIndex(list(WIRES).index(draft.wire))
        self._exchange.setCurrentIndex(list(EXCHANGES).index(draft.exchange))
        self._downloads.setChecked(draft.downloads)
        as_usual = (None, None, "f32", None, True)
        if (draft.seed, draft.strategy, draft.wire, draft.exchange, draft.downloads) != as_usual:
            self.head.setChecked(True)

    def show_sealed(self, sealed: bool) -> None:
        """Whether the run's trainers are sealed: only then can a script be kept from downloading."""
        self._form.setRowVisible(self._downloads, sealed)


def _choices(words: list[str], name: str) -> QComboBox:
    box = unscrolled(QComboBox())
    box.addItems(words)
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(LEAST_CHARACTERS)
    return box
