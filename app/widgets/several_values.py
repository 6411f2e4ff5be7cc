"""Whether a script is to be trained with several values of its arguments, and with how many of them."""

from __future__ import annotations

import random
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QSpinBox, QWidget

from app.models.draft import RunDraft, combinations_of
from app.widgets.card import column
from app.widgets.flow import Flow
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers, set_tooltip
from core.vocabulary import units
from core.vocabulary.sweep import MODELS_KEPT, MOST_SETS, MOST_TRIALS

_HOW = """Separate values by commas: --lr 0.1,0.01. Each combination trains on one laptop, at its full \
speed, and a laptop takes the next when it is free."""
_AGAIN = """Each repeat uses a different seed, and so different initial weights, unless the script sets its \
own. This shows how much of a difference is chance."""
_MODELS = (
    f"""Otherwise only the best {MODELS_KEPT} trials keep their models and checkpoints on this laptop."""
)
_FIRST = 16
"""Combinations that are drawn unless the user says otherwise; of fewer than twice as many, half."""


class SeveralValues(QWidget):
    """``changed(draft)`` after a user's change. The check box ``several`` is to be placed by the screen."""

    changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._draft = RunDraft()
        self.several = QCheckBox("Try several values")
        self.several.setObjectName("several")
        set_tooltip(self.several, _HOW)
        self.several.clicked.connect(lambda on: self._change(replace(self._draft, several=on)))
        self.random = QCheckBox("Only some, drawn at random:")
        self.random.setObjectName("at-random")
        self.random.clicked.connect(self._on_random)
        self.some = _number(1, MOST_SETS, "Combinations drawn at random")
        self.some.setValue(_FIRST)
        self.some.valueChanged.connect(self._on_some)
        self.repeat = _number(1, MOST_TRIALS, "How many times to train each combination")
        self.repeat.setSpecialValueText("once")
        self.repeat.setSuffix(" times")
        set_tooltip(self.repeat, _AGAIN)
        self.repeat.valueChanged.connect(self._on_repeat)
        label = Label("Train each:", "faint")
        label.setBuddy(self.repeat)
        self.models = QCheckBox("Keep all models")
        self.models.setObjectName("all-models")
        set_tooltip(self.models, _MODELS)
        self.models.clicked.connect(lambda on: self._change(replace(self._draft, all_models=on)))
        self.count = Label("", "faint", wraps=True)
        choices = Flow(self.random, self.some, label, self.repeat, self.models)
        self.setLayout(column(choices, self.count))

    def show_draft(self, draft: RunDraft) -> None:
        self._draft = draft
        self.setVisible(draft.several)
        self.several.setChecked(draft.several)
        self.random.setChecked(draft.at_random is not None)
        self.models.setChecked(draft.all_models)
        total = combinations_of(draft)
        # Nothing to choose from, nothing to say about it.
        for each in (self.random, self.some):
            each.setVisible(total > 1 or draft.at_random is not None)
        self.some.setEnabled(draft.at_random is not None)
        most = max(1, min(total, MOST_SETS))
        wanted = draft.at_random or min(_FIRST, -(-most // 2))
        for box, value, limit in ((self.some, wanted, most), (self.repeat, draft.repeat, MOST_TRIALS)):
            box.blockSignals(True)
            box.setRange(1, limit)
            box.setValue(value)
            box.blockSignals(False)
        self.count.say_or_hide(_words(draft) if draft.several else "")

    def _on_random(self, on: bool) -> None:
        self._change(replace(self._draft, at_random=self.some.value() if on else None, draw=_new_draw()))

    def _on_some(self, count: int) -> None:
        self._change(replace(self._draft, at_random=count, draw=_new_draw()))

    def _on_repeat(self, seeds: int) -> None:
        self._change(replace(self._draft, repeat=seeds))

    def _change(self, draft: RunDraft) -> None:
        self.show_draft(draft)
        self.changed.emit(draft)


def _words(draft: RunDraft) -> str:
    """``16 of 1,000 combinations, each 3 times: 48 trials.``"""
    total = combinations_of(draft)
    if not total:
        return ""
    some = total if draft.at_random is None else min(draft.at_random, total)
    if draft.repeat == some == total == 1:
        return "Separate the values to try by commas: --lr 0.1,0.01."
    of = f"{some:,} of " if some < total else ""
    times = f", each {draft.repeat:,} times" if draft.repeat > 1 else ""
    words = f"{of}{units.number_of(total, 'combination')}{times}"
    return f"{words}: {units.number_of(some * draft.repeat, 'trial')}."


def _new_draw() -> int:
    return random.getrandbits(32)


def _number(least: int, most: int, name: str) -> QSpinBox:
    box = unscrolled(QSpinBox())
    box.setRange(least, most)
    name_for_readers(box, name)
    return box
