"""TF_CONFIG as it will be written, one per task, to read and copy."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox

from app.widgets.buttons import button
from app.widgets.card import fill, row
from app.widgets.fold import Fold
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, TextView, name_for_readers
from app.words.device_names import names_of
from core.vocabulary.answers import PlanMade
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State

_ALONE = "One laptop alone needs no TF_CONFIG."
_PORTS = "Each laptop may still choose another port when the run starts."


class TfConfigFold(Fold):
    def __init__(self) -> None:
        super().__init__("TF_CONFIG", name="tf-config")
        self._texts: dict[str, str] = {}
        self.task = unscrolled(QComboBox())
        name_for_readers(self.task, "Task")
        self.text = TextView("TF_CONFIG", "Exactly as it will be written.", wraps=True)
        self.text.setMaximumHeight(self.fontMetrics().height() * 6)
        self.copy = button("Copy", self._copy, name="copy-tf-config")
        self.note = Label(_ALONE, "faint", wraps=True)
        fill(self.body, row(self.task, 1, self.copy), self.text, self.note)
        self.task.currentIndexChanged.connect(lambda _: self._show_text())
        self.show_plan(None, State())

    def show_plan(self, made: PlanMade | None, state: State) -> None:
        texts = dict(made.tf_configs) if made is not None else {}
        if texts != self._texts:
            self._texts = texts
            chosen = self.task.currentData()
            names = names_of(state, {DeviceId(key.partition("/")[0]) for key in texts})
            self.task.blockSignals(True)
            self.task.clear()
            for key in texts:
                device, _, task = key.partition("/")
                self.task.addItem(f"{names[DeviceId(device)]}: {task}", key)
            self.task.setCurrentIndex(max(0, self.task.findData(chosen)) if texts else -1)
            self.task.blockSignals(False)
            self._show_text()
        for piece in (self.task, self.text, self.copy):
            piece.setVisible(bool(texts))
        self.note.say(_PORTS if texts else _ALONE)

    def _show_text(self) -> None:
        self.text.setPlainText(self._texts.get(self.task.currentData() or "", ""))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._texts.get(self.task.currentData() or "", ""))
        self.note.say("Copied.")
