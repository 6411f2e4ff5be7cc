"""What hardly anybody needs to change: seed, strategy, number format on the wire, how trainers meet."""

from __future__ import annotations

from typing import get_args

from PySide6.QtCore import Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QComboBox, QFormLayout, QLineEdit

from app.theme import GAP
from app.widgets.fold import Fold
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers
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
        form = QFormLayout()
        form.setHorizontalSpacing(GAP)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        for title, field in (
            ("Seed", self._seed),
            ("Strategy", self._strategy),
            ("Gradients travel as", self._wire),
            ("Laptops meet by", self._exchange),
        ):
            label = Label(title, "faint")
            label.setBuddy(field)
            form.addRow(label, field)
        self.body.addLayout(form)
        self._seed.textEdited.connect(lambda _: self.changed.emit())
        self._strategy.activated.connect(lambda _: self.changed.emit())
        self._wire.activated.connect(lambda _: self.changed.emit())
        self._exchange.activated.connect(lambda _: self.changed.emit())

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

    def show_options(
        self, seed: int | None, strategy: StrategyKind | None, wire: Wire, exchange: Exchange | None
    ) -> None:
        """As they were in an earlier run, say; in sight where they are not as usual."""
        self._seed.setText("" if seed is None else str(seed))
        self._strategy.setCurrentIndex(list(STRATEGIES).index(strategy))
        self._wire.setCurrentIndex(list(WIRES).index(wire))
        self._exchange.setCurrentIndex(list(EXCHANGES).index(exchange))
        if (seed, strategy, wire, exchange) != (None, None, "f32", None):
            self.head.setChecked(True)


def _choices(words: list[str], name: str) -> QComboBox:
    box = unscrolled(QComboBox())
    box.addItems(words)
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(LEAST_CHARACTERS)
    return box
